"""Compares all records of a folder."""

from collections.abc import Callable, Collection, Sequence
from itertools import chain
from pathlib import Path

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.base.machine import now
from common.chapters.chapters import CHAPTERS, spec
from common.chapters.suites import SUITES, Suite
from common.compare.checks import SuiteResult
from common.compare.collect import LoadedRecord, device_counts, gather, references_of
from common.compare.findings import Verdict
from common.compare.runs import RecordedRun
from common.records.record import record_name


def examine(
    folder: Path,
    *,
    frameworks: Sequence[str] = FRAMEWORKS,
    chapters: Sequence[str] = CHAPTERS,
    suites: Collection[str] = (),
    planned: Callable[[Suite], Sequence[int]] | None = None,
    without_gpu: Sequence[str] = (),
) -> list[SuiteResult]:
    """Compares all records in `folder` and in the suites' folders below it.

    Every framework is expected to have a record for every device count, except where it lacks what
    a suite needs, or is `without_gpu`. `planned` returns the device counts of a suite, whose plan
    runs have to follow. Without it, whatever is there is compared. `suites` are compared alone.
    Raises RequestError if there is nothing to compare.
    """
    loaded: dict[tuple[str, str], list[LoadedRecord]] = {}
    for suite in SUITES:
        out = {*suite.lacking, *(without_gpu if suite.kind == "gpu" else ())}
        names = [name for name in frameworks if name not in out]
        if not names or suite.chapter not in chapters:
            continue
        place = folder / suite.folder, suite.chapter, way_of(suite)
        devices = planned(suite) if planned else device_counts(*place, names)
        if devices and not planned and 1 in (*suite.devices, *suite.more_devices):
            devices = sorted({1, *devices})
        if devices:
            key = suite.chapter, suite.name
            loaded[key] = gather(*place, names, devices, suite if planned else None)
    if idle := {*suites} - {name for _, name in loaded}:
        raise RequestError(
            f"no run of {', '.join(sorted(idle))} is planned: see --more-devices, --gpus, "
            "--frameworks and --chapters; without --suites, all runs there are compared"
        )
    if not loaded:
        raise RequestError(f"there are no records in {folder}: plain `nox` makes them")
    runs = {key: [entry.run for entry in loaded[key] if entry.run] for key in loaded}
    exact = references_of(run for run in chain(*runs.values()) if is_exact(run))
    results: list[SuiteResult] = []
    for suite in SUITES:
        key = suite.chapter, suite.name
        if key in loaded and (not suites or suite.name in suites):
            rounded = references_of(run for run in runs[key] if not is_exact(run))
            related = {name: runs[chapter, name] for chapter, name in runs if chapter == key[0]}
            on_cpu = [name for name in frameworks if name in without_gpu]
            result = SuiteResult(
                suite=suite,
                found=loaded[key],
                references=rounded | exact,
                related=related,
                notes=elsewhere(suite, on_cpu),
                lacking={name: suite.lacking[name] for name in suite.lacking if name in frameworks},
                examined=results,
            )
            results.append(result)
    return results


def is_exact(run: RecordedRun) -> bool:
    return (run.record.config.dtype, run.record.config.device_kind) == ("float64", "cpu")


def elsewhere(suite: Suite, without_gpu: Sequence[str]) -> list[str]:
    """Which frameworks had other devices than the suite asks for, in words."""
    on_cpu = [name for name in without_gpu if suite.kind == "gpu" and name not in suite.lacking]
    return [f"on the CPU alone: {', '.join(on_cpu)}"] if on_cpu else []


def only_in_grid(chapters: Sequence[str]) -> list[str]:
    """The suites that plain `nox` does not run."""
    return [
        f"{suite.chapter} {suite.name}"
        for suite in SUITES
        if suite.chapter in chapters and suite.kind == "cpu"
        if suite.more_devices and not suite.devices
    ]


def in_no_suite(folder: Path, examined: Sequence[SuiteResult]) -> list[str]:
    """The records in `folder` that no suite has, such as those of a mesh; not those below it."""
    compared = {
        record_name(entry.framework, result.suite.chapter, entry.devices, way_of(result.suite))
        for result in examined
        for entry in result.found
        if result.suite.folder == "."
    }
    return sorted({path.name for path in folder.glob("*dev.json")} - compared)


def way_of(suite: Suite) -> str:
    return spec(suite.chapter).way(suite.settings)


def verdict_on(
    examined: Sequence[SuiteResult], not_run: Sequence[str] = (), ignored: Sequence[str] = ()
) -> Verdict:
    comparisons = [result.comparison for result in examined]
    checks = [check for comparison in comparisons for check in comparison.checks]
    return Verdict(
        passed=bool(checks) and all(check.passed for check in checks),
        created=now(),
        comparisons=comparisons,
        not_run=list(not_run),
        ignored=list(ignored),
    )
