"""Compares all records of a folder."""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.chapters.spec import CHAPTERS, spec
from common.chapters.suites import SUITES, Suite
from common.compare.collect import LoadedSuite, alike, read
from common.compare.comparison import SuiteResult, compare, recompute_steps
from common.records.record import record_name
from common.terminal.command import DEVICES


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
        lacking = {*suite.lacking, *(without_gpu if suite.kind == "gpu" else ())}
        able = [name for name in frameworks if name not in lacking]
        if not able or suite.chapter not in chapters:
            continue
        place, files = folder / suite.folder, names_of(suite, able)
        there = {path.name for path in place.glob("*.json")}
        devices = sorted({k for (_, k), name in files.items() if name in there})
        if devices and 1 in (*suite.devices, *suite.more_devices):
            devices = sorted({1, *devices})
        if runs := [*product(able, planned(suite) if planned else devices)]:
            found = [read(place / files[run], *run, suite if planned else None) for run in runs]
            why = {name: why for name, why in suite.lacking.items() if name in frameworks}
            loaded.append(LoadedSuite(suite, alike(found), why))
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


def in_no_suite(folder: Path, examined: Sequence[SuiteResult]) -> list[str]:
    """The records in `folder` that no suite has, such as those of a mesh; not those below it."""
    compared = {
        name
        for each in examined
        if each.suite.folder == "."
        for name in names_of(each.suite, [x.framework for x in each.loaded.found]).values()
    }
    return sorted({path.name for path in folder.glob("*dev.json")} - compared)


def names_of(suite: Suite, frameworks: Iterable[str]) -> dict[tuple[str, int], str]:
    """The names of the files of records, by framework and number of devices."""
    way = spec(suite.chapter).way(suite.settings)
    runs = product(frameworks, range(1, DEVICES + 1))
    return {(name, k): record_name(name, suite.chapter, k, way) for name, k in runs}
