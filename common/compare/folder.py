"""Compares all records of a folder."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.chapters.spec import CHAPTERS, spec
from common.chapters.suites import SUITES, Suite
from common.compare.collect import LoadedSuite, device_counts, gather
from common.compare.comparison import SuiteResult, compare, recompute_steps
from common.records.record import record_name


def examine(folder: Path, **chosen: Any) -> list[SuiteResult]:
    """Compares the records that `load` chooses."""
    loaded = load(folder, **chosen)
    return compare(loaded, recompute_steps(loaded))


def load(
    folder: Path,
    *,
    frameworks: Sequence[str] = FRAMEWORKS,
    chapters: Sequence[str] = CHAPTERS,
    planned: Callable[[Suite], Sequence[int]] | None = None,
    without_gpu: Sequence[str] = (),
    known: Sequence[Suite] = SUITES,
) -> list[LoadedSuite]:
    """Reads the records of the `known` suites in `folder` and in their folders below it.

    Every framework is expected to have a record for every device count, except where it lacks what
    a suite needs, or is `without_gpu`. `planned` returns the device counts of a suite, whose plan
    runs have to follow. Without it, whatever is there is loaded. Raises RequestError if there is
    nothing to compare.
    """
    loaded: list[LoadedSuite] = []
    for suite in known:
        on_cpu = without_gpu if suite.kind == "gpu" else ()
        names = [name for name in frameworks if name not in (*suite.lacking, *on_cpu)]
        if not names or suite.chapter not in chapters:
            continue
        place = folder / suite.folder, suite.chapter, way_of(suite)
        devices = planned(suite) if planned else device_counts(*place, names)
        if devices and not planned and 1 in (*suite.devices, *suite.more_devices):
            devices = sorted({1, *devices})
        if devices:
            only_cpu = [x for x in frameworks if x in on_cpu and x not in suite.lacking]
            found = gather(*place, names, devices, suite if planned else None)
            loaded.append(
                LoadedSuite(
                    suite,
                    found,
                    notes=[f"on the CPU alone: {', '.join(only_cpu)}"] if only_cpu else [],
                    lacking={x: why for x, why in suite.lacking.items() if x in frameworks},
                )
            )
    if not loaded:
        raise RequestError(f"there are no records in {folder}: plain `nox` makes them")
    return loaded


def only_in_grid(chapters: Sequence[str]) -> list[str]:
    """The suites that plain `nox` does not run."""
    return [
        f"{suite.chapter} {suite.name}"
        for suite in SUITES
        if suite.chapter in chapters and suite.kind == "cpu"
        if suite.more_devices and not suite.devices
    ]


def in_no_suite(folder: Path, loaded: Sequence[LoadedSuite]) -> list[str]:
    """The records in `folder` that no suite has, such as those of a mesh; not those below it."""
    compared = {
        record_name(entry.framework, each.suite.chapter, entry.devices, way_of(each.suite))
        for each in loaded
        for entry in each.found
        if each.suite.folder == "."
    }
    return sorted({path.name for path in folder.glob("*dev.json")} - compared)


def way_of(suite: Suite) -> str:
    return spec(suite.chapter).way(suite.settings)
