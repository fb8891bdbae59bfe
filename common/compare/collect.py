"""Reads the records of a suite, and refuses those that cannot be compared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from common.base.errors import RunError
from common.chapters.spec import spec
from common.chapters.suites import Suite
from common.compare.runs import RecordedRun, identity, other_settings
from common.models.weights_file import digest
from common.records.record import (
    Record,
    made_elsewhere,
    read_record,
    read_tensors,
    require_complete,
    require_own,
)

INPUTS: Final = ("trace/images/", "trace/labels/", "probe/", "test/images", "test/labels")
"""Arrays that have to be the same in all runs of a suite."""


@dataclass(frozen=True)
class LoadedRecord:
    """What was found of one expected record: a run to compare, or the trouble with it."""

    framework: str
    devices: int
    run: RecordedRun | None
    trouble: str = ""
    record: Record | None = None


@dataclass(frozen=True)
class LoadedSuite:
    """A suite with an entry for each expected record.

    `lacking` says why some of the frameworks have no such runs.
    """

    suite: Suite
    found: Sequence[LoadedRecord]
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> list[RecordedRun]:
        return [entry.run for entry in self.found if entry.run]


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
        run = load(path, record)
        others = other_settings(record.config, planned.settings, planned.kind) if planned else {}
        for name, value in others.items():
            setting = record.config.settings()[name]
            raise RunError(f"{name} is {setting}, and the suite asks for {value}")
        return LoadedRecord(framework, devices, run, record=record)
    except RunError as error:
        return LoadedRecord(framework, devices, None, str(error), record)


def load(path: Path, record: Record) -> RecordedRun:
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
