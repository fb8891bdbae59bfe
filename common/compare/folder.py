"""Compares all records of a folder: what `python -m common.parity DIR` prints, as a call."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.base.machine import now
from common.chapters.chapters import CHAPTERS, SPECS, SUITES
from common.chapters.suites import Suite
from common.compare import repeats
from common.compare.checks import Run
from common.compare.collect import (
    Reference,
    device_counts,
    expected_of,
    gather,
    references_of,
)
from common.compare.planned import other_settings, suite_of
from common.compare.suite import SuiteResult, Verdict, compare_suite
from common.settings.config import Config

TELLING: Final = ("dtype", "allreduce", "batch_norm")
"""Settings that the name of a suite promises of every run in its folder."""


def examine(
    folder: Path,
    *,
    frameworks: Sequence[str] = FRAMEWORKS,
    chapters: Sequence[str] = CHAPTERS,
    suites: Sequence[str] | None = None,
    more_devices: bool = False,
    over_hosts: int = 0,
    gpus: Mapping[str, int] | None = None,
) -> list[SuiteResult]:
    """Compares all records in `folder` and in the suites' folders below it.

    Every framework is expected to have a record for every device count, but for suites for which
    it is lacking something: whatever it has of these is left out. `suites` names the only
    suites that are compared, and must be there just as they are planned; if it is empty, all that
    are. They are planned on 1 and 2 devices or, with `more_devices`, on all, or over hosts, on at
    most `over_hosts`; those on GPUs only of the frameworks that `gpus` names, on at most as many as
    it says, which is the same for all. Without `suites`, whatever is there is compared; a run on
    one device is expected beside it if the suite plans one. Raises RequestError if there is
    nothing, or no run of a named suite is planned.
    """
    examined: list[SuiteResult] = []
    most = max(gpus.values()) if gpus else 0
    planned = partial(Suite.counts, more_devices=more_devices, over_hosts=over_hosts, gpus=most)
    known = [
        each.name
        for each in SUITES
        if each.chapter in chapters and planned(each) and {*frameworks} - each.lacking.keys()
    ]
    if idle := [name for name in suites or () if name not in known]:
        raise RequestError(
            f"no run of {', '.join(idle)} is planned: see --more-devices, --over-hosts, --gpus, "
            "--frameworks and --chapters; without --suites, all runs that are there are compared"
        )
    needed = {each.alone_in for each in SUITES if each.name in (suites or ())}
    for chapter in chapters:
        exact: dict[int | None, Reference] = {}
        runs: dict[tuple[str, str, int], Run] = {}
        for suite in (each for each in SUITES if each.chapter == chapter):
            with_gpu = frameworks if suite.kind == "cpu" or not gpus else gpus
            able = [each for each in frameworks if each not in suite.lacking]
            names = [each for each in able if each in with_gpu]
            place = (
                folder / suite.folder,
                chapter,
                SPECS[chapter].way(suite.settings),
                names,
            )
            counts = _there(suite, device_counts(*place)) if suites is None else planned(suite)
            compared = not suites or suite.name in suites
            if not compared:  # others may need its run on one device
                counts = [k for k in counts if k == 1 and suite.name in needed]
            if not (counts and names):
                continue
            asked = partial(_broken_promises if suites is None else other_settings, suite=suite)
            found = gather(*place, counts, asked)
            own = [each.run for each in found if each.run]
            runs |= {(suite.name, run.record.framework, run.devices): run for run in own}
            if not compared:
                continue
            references = expected_of(found, exact)
            comparison = compare_suite(
                _name(own, suite) if suites is None else suite.name,
                chapter,
                found,
                references,
                partial(repeats.findings, suite, runs),
                [run for (of, _, k), run in runs.items() if k == 1 and of == suite.alone_in],
            )
            instead = {
                "on the CPU alone": [each for each in able if each not in names],
                "in processes of one host": repeats.on_one_host(suite, own),
            }
            told = [f"{where}: {', '.join(those)}" for where, those in instead.items() if those]
            comparison.notes = [*told, *comparison.notes]
            comparison.lacking = {k: why for k, why in suite.lacking.items() if k in frameworks}
            examined.append(SuiteResult(comparison, found, references))
            if suite.name.startswith("float64") and not suite.lacking:
                exact |= references_of(found)
    if not examined:
        raise RequestError(f"there are no records in {folder}: plain `nox` makes them")
    return examined


def _there(suite: Suite, found: Collection[int]) -> Sequence[int]:
    """The device counts of the runs that are there, and 1 if the suite plans it beside them."""
    beside = {1} & {*suite.devices, *suite.more_devices, *suite.hosts} if found else set()
    return sorted({*found, *beside})


def _broken_promises(config: Config, suite: Suite) -> Mapping[str, Any]:
    """What the name of a suite says and a run in its folder is not."""
    promised = {name: suite.settings[name] for name in TELLING if name in suite.settings}
    if suite.folder != ".":  # where runs go by default
        promised["device_kind"] = suite.kind
    found = config.settings()
    return {name: value for name, value in promised.items() if found[name] != value}


def _name(runs: Sequence[Run], suite: Suite) -> str:
    """What to call the runs in a suite's folder: by its name only if they are what it plans."""
    as_planned = all(suite_of(run.record.config) == suite for run in runs)
    return suite.name if (runs and as_planned) or suite.folder != "." else "own"


def only_in_grid(chapters: Sequence[str]) -> list[str]:
    """The suites that plain `nox` does not run on any number of devices."""
    return [
        f"{suite.chapter} {suite.name}"
        for suite in SUITES
        if suite.chapter in chapters and suite.kind == "cpu" and suite.more_devices
        if not suite.devices
    ]


def verdict_on(examined: Sequence[SuiteResult], not_run: Sequence[str] = ()) -> Verdict:
    """Passed, if every check of every suite has."""
    comparisons = [each.comparison for each in examined]
    checks = [check for comparison in comparisons for check in comparison.checks]
    return Verdict(
        passed=bool(checks) and all(check.passed for check in checks),
        created=now(),
        comparisons=comparisons,
        not_run=list(not_run),
    )
