"""Reads and compares all records of a folder, and refuses those that cannot be compared."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.chapters.spec import CHAPTERS, spec
from common.chapters.suites import SUITES, Suite
from common.compare.comparison import SuiteResult, compare, recompute_steps
from common.compare.peers import LoadedRecord, LoadedSuite
from common.compare.runs import RecordedRun, identity, other_settings
from common.models.weights_file import digest
from common.records.record import (
    Record,
    made_elsewhere,
    read_record,
    read_tensors,
    record_name,
    require_complete,
    require_own,
)
from common.terminal.command import DEVICES

INPUTS: Final = ("trace/images/", "trace/labels/", "probe/", "test/images", "test/labels")
"""Arrays that have to be the same in all runs of a suite."""


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


def alike(found: Sequence[LoadedRecord]) -> list[LoadedRecord]:
    """The entries; a run of another setting than most, or made elsewhere, cannot be compared."""
    runs = [entry.run for entry in found if entry.run]
    settings = {run.name: _setting(run) for run in runs}
    every = [*settings.values()]
    common = max(every, key=every.count, default={})
    records = [run.record for run in runs]

    def checked(entry: LoadedRecord) -> LoadedRecord:
        if entry.run is None:
            return entry
        record = entry.run.record
        trouble = other_minibatches(record, records) or made_elsewhere(record, records)
        for name, value in settings[entry.run.name].items():
            if value != common[name]:
                trouble = f"{name} is {value}, and others have {common[name]}"
                break
        return replace(entry, run=None, trouble=trouble) if trouble else entry

    return [checked(entry) for entry in found]


def read(path: Path, framework: str, devices: int, planned: Suite | None) -> LoadedRecord:
    """What is found at `path`, which has to be as a suite has `planned`, if any."""
    record = None
    try:
        if not path.is_file():
            raise RunError(f"there is no {path}")
        record = read_record(path)
        require_own(path, record)
        run = recorded_run(path, record)
        others = other_settings(record.config, planned.settings, planned.kind) if planned else {}
        for name, value in others.items():
            setting = record.config.settings()[name]
            raise RunError(f"{name} is {setting}, and the suite asks for {value}")
        return LoadedRecord(framework, devices, run, record=record)
    except RunError as error:
        return LoadedRecord(framework, devices, None, str(error), record)


def recorded_run(path: Path, record: Record) -> RecordedRun:
    """The run of the record at `path`. Raises RunError if it cannot be trusted."""
    require_complete(path, record)
    return RecordedRun(record, {**read_tensors(path, record), "losses": np.array(record.losses)})


def _setting(run: RecordedRun) -> dict[str, Any]:
    """What all runs of a suite have in common."""
    config = run.record.config
    setting = {name: value for name, value in identity(run.record).items() if name != "shards"}
    chapter = spec(config.chapter)
    # With more devices, such a preset takes larger minibatches, and larger steps.
    for name in ("batch_size", "lr") if config.preset in chapter.per_device else ():
        if setting[name] == chapter.preset(config.preset, config.devices)[name]:
            setting[name] = f"{chapter.presets[config.preset][name]} a device"
    inputs = {name: values for name, values in run.arrays.items() if name.startswith(INPUTS)}
    return {**setting, "minibatches": digest(inputs)}


def other_minibatches(record: Record, others: Sequence[Record]) -> str:
    """Two epochs of one order, or an epoch in which most runs had another; empty if none."""
    seen: dict[str, int] = {}
    # Of fewer examples, two epochs may have the same order by chance.
    for epoch in record.epochs if record.config.train_examples > 20 else ():
        if (first := seen.setdefault(epoch.minibatches_sha256, epoch.epoch)) != epoch.epoch:
            return f"epochs {first} and {epoch.epoch} have the same minibatches in the same order"
    size = record.config.batch_size
    alike = [other.epochs for other in others if other.config.batch_size == size]
    for number, epochs in enumerate(zip(*alike, strict=False)):
        digests = Counter(epoch.minibatches_sha256 for epoch in epochs)
        (most, _), *_ = digests.most_common()
        if record.epochs[number].minibatches_sha256 != most:
            return f"minibatches of epoch {number + 1} are not those of others"
    return ""


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
