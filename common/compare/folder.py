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
from common.compare.checks import Run, allowed, check_shapes
from common.compare.collect import LoadedRecord, device_counts, gather, references_of
from common.compare.planned import other_settings, suite_of
from common.compare.recorded_steps import recompute_all
from common.compare.suite import SuiteResult, Verdict, on_one_host
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

    Every framework is expected to have a record for every device count, except where it lacks what
    a suite needs: its records there are left out. `suites` names the only suites that are compared,
    with all their planned runs; if it is empty, all suites are. They are planned on 1 and 2 devices
    or, with `more_devices`, on all, or over hosts, on at most `over_hosts`; on GPUs, by the
    frameworks that `gpus` names, on at most as many as it says, which is the same for all. Without
    `suites`, whatever is there is compared; a run on one device is expected, too, if the suite
    plans one. Raises RequestError if there is nothing, or no run of a named suite is planned.
    """
    most = max(gpus.values()) if gpus else 0
    counts = partial(Suite.counts, more_devices=more_devices, over_hosts=over_hosts, gpus=most)
    chosen = [each for each in SUITES if each.chapter in chapters]
    known = {each.name for each in chosen if counts(each) and {*frameworks} - each.lacking.keys()}
    if idle := [name for name in suites or () if name not in known]:
        raise RequestError(
            f"no run of {', '.join(idle)} is planned: see --more-devices, --over-hosts, --gpus, "
            "--frameworks and --chapters; without --suites, all runs that are there are compared"
        )
    wanted = [each for each in chosen if not suites or each.name in suites]
    needed = {each.alone_in for each in wanted}
    loaded: dict[tuple[str, str], list[LoadedRecord]] = {}
    for suite in chosen:
        with_gpu = frameworks if suite.kind == "cpu" or not gpus else gpus
        names = [each for each in frameworks if each in with_gpu and each not in suite.lacking]
        place = folder / suite.folder, suite.chapter, SPECS[suite.chapter].way(suite.settings)
        if suites is None:
            numbers = _there(suite, device_counts(*place, names))
        elif suite in wanted:
            numbers = counts(suite)
        else:  # others may need its run on one device
            numbers = [k for k in counts(suite) if k == 1 and suite.name in needed]
        if numbers and names:
            asked = partial(_broken_promises if suites is None else other_settings, suite=suite)
            loaded[suite.chapter, suite.name] = gather(*place, names, numbers, asked)

    def runs_of(chapter: str, name: str) -> list[Run]:
        return [each.run for each in loaded.get((chapter, name), ()) if each.run]

    compared = [each for each in wanted if (each.chapter, each.name) in loaded]
    if not compared:
        raise RequestError(f"there are no records in {folder}: plain `nox` makes them")
    exact = references_of(
        run for each in compared if each.exact for run in runs_of(each.chapter, each.name)
    )
    examined = []
    for suite in compared:
        chapter, runs = suite.chapter, runs_of(suite.chapter, suite.name)
        lacking = {name: why for name, why in suite.lacking.items() if name in frameworks}
        on_cpu = frameworks if suite.kind == "gpu" and gpus else ()
        elsewhere = {
            "on the CPU alone": [x for x in on_cpu if x not in (gpus or ()) and x not in lacking],
            "in processes of one host": on_one_host(suite, runs),
        }
        result = SuiteResult(
            suite.name if suites is not None else _name(runs, suite),
            suite,
            loaded[chapter, suite.name],
            references_of(runs, exact, independent=not suite.exact),
            recompute_all([each for each in runs if not check_shapes(each)[0] and allowed(each)]),
            [run for run in runs_of(chapter, suite.alone_in) if run.devices == 1],
            {(run.record.framework, run.devices): run for run in runs_of(chapter, suite.repeats)},
            [f"{where}: {', '.join(who)}" for where, who in elsewhere.items() if who],
            lacking,
        )
        examined.append(result)
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
