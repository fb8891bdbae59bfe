"""Finds the records of a suite, and decides which are compared, and with what."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from common.base.arrays import Weights
from common.base.errors import RunError
from common.chapters.chapters import SPECS
from common.compare.checks import Run, median
from common.records.record import ANY, Record, record_name
from common.records.store import read_record, read_tensors
from common.records.trust import made_elsewhere, require_complete, require_own
from common.settings.config import Config

Asked = Callable[[Config], Mapping[str, Any]]
"""What is asked of a run: each setting that it has otherwise, with the value it should have."""


@dataclass(frozen=True)
class LoadedRecord:
    """What was found of one expected record: a run to compare, or what is wrong with it.

    `record` is there as soon as the file is a record, however little it can be trusted.
    """

    framework: str
    devices: int
    run: Run | None
    trouble: str = ""
    record: Record | None = None


def gather(
    folder: Path,
    chapter: str,
    way: str,
    frameworks: Iterable[str],
    devices: Iterable[int],
    asked: Asked,
) -> list[LoadedRecord]:
    """One entry for each expected record, in order; `asked` tells what a run must have been."""
    found = [
        _find(folder / record_name(framework, chapter, k, way), framework, k, asked)
        for framework, k in product(frameworks, devices)
    ]
    shared = [_shared(each.run) if each.run else {} for each in found]
    counts = Counter(tuple(each.items()) for each in shared if each)
    common = dict(counts.most_common(1)[0][0]) if counts else {}
    records = [each.run.record for each in found if each.run]
    return [_like_others(*each, common, records) for each in zip(found, shared, strict=True)]


def device_counts(folder: Path, chapter: str, way: str, frameworks: Iterable[str]) -> set[int]:
    """The device counts of which `folder` has a record of any of the frameworks."""
    counts = set()
    for framework in frameworks:
        before, after = record_name(framework, chapter, ANY, way).split(ANY)
        for path in folder.glob(f"{before}{ANY}{after}"):
            counts.add(path.name.removeprefix(before).removesuffix(after))
    return {int(count) for count in counts if count.isdecimal()}


def _find(path: Path, framework: str, devices: int, asked: Asked) -> LoadedRecord:
    if not path.is_file():
        return LoadedRecord(framework, devices, None, f"there is no {path}")
    record = None
    try:
        record = read_record(path)
        require_own(path, record)
        run = load(path, record)
        for name, value in asked(record.config).items():
            found = record.config.settings()[name]
            raise RunError(f"{name} is {found}, and the suite asks for {value}")
        return LoadedRecord(framework, devices, run, record=record)
    except RunError as error:
        return LoadedRecord(framework, devices, None, str(error), record)


def load(path: Path, record: Record) -> Run:
    """The run of the record at `path`. Raises RunError if it cannot be trusted."""
    require_complete(path, record)
    return Run(record, {**read_tensors(path, record), "losses": np.array(record.losses)})


def identity(record: Record) -> dict[str, Any]:
    """What has to be the same in all records that say the same."""
    return {
        **record.config.numerics(),
        "data": record.data.sha256,
        "initial weights": record.initial_weights_sha256,
    }


def _shared(run: Run) -> dict[str, Any]:
    """What all runs of a suite have in common, also those that normalize other shards."""
    config = run.record.config
    shared = {name: value for name, value in identity(run.record).items() if name != "shards"}
    spec = SPECS[config.chapter]
    # With more devices, such a preset takes larger minibatches, and larger steps.
    for name in ("batch_size", "lr") if config.preset in spec.per_device else ():
        if shared[name] == spec.preset(config.preset, config.devices)[name]:
            shared[name] = f"{spec.presets[config.preset][name]} a device"
    return {**shared, "minibatches": _minibatches(run)}


def _minibatches(run: Run) -> str:
    """The SHA-256 over the minibatches that a run has kept, and the images it was probed with."""
    state = hashlib.sha256()
    for name, values in sorted(run.arrays.items()):
        if name.startswith(("trace/images/", "trace/labels/", "probe/", "test/labels")):
            state.update(f"{name}{values.shape}".encode())
            state.update(np.ascontiguousarray(values).tobytes())
    return state.hexdigest()


def _like_others(
    found: LoadedRecord,
    shared: Mapping[str, Any],
    common: Mapping[str, Any],
    records: Sequence[Record],
) -> LoadedRecord:
    """`found`, unless it is of another setting than the others, or was made elsewhere."""
    for name, value in shared.items():
        if common[name] != value:
            trouble = f"{name} is {value}, and others have {common[name]}"
            return replace(found, run=None, trouble=trouble)
    if found.run and (trouble := made_elsewhere(found.run.record, records)):
        return replace(found, run=None, trouble=trouble)
    return found


@dataclass(frozen=True)
class Reference:
    """What runs are compared with: the entry-wise median of some runs of one identity.

    `runs` is their number. `independent` says that other runs have agreed on it than those that are
    compared with it.
    """

    name: str
    identity: dict[str, Any]
    arrays: Weights
    runs: int
    independent: bool = False

    @property
    def alone(self) -> bool:
        """Whether it is one run, and so the very one that is compared with it."""
        return self.runs < 2 and not self.independent

    def suits(self, run: Run) -> bool:
        """Whether a run computed the same thing, in whatever dtype."""
        return {**self.identity, "dtype": ""} == {**identity(run.record), "dtype": ""}


def references_of(found: Sequence[LoadedRecord]) -> dict[int | None, Reference]:
    """What the runs of a suite agree on: one for all, or one for each number of shards."""
    groups: dict[int | None, list[Run]] = {}
    for each in found:
        if each.run:
            groups.setdefault(each.run.shards, []).append(each.run)
    return {
        shards: Reference(
            f"the median of {len(runs)} {runs[0].record.config.dtype} runs",
            identity(runs[0].record),
            median(runs),
            len(runs),
        )
        for shards, runs in groups.items()
    }


def expected_of(
    found: Sequence[LoadedRecord], exact: Mapping[int | None, Reference]
) -> dict[int | None, Reference]:
    """What each run is compared with: its `exact` result, if there is one, else the median."""
    references = references_of(found)
    for run in (each.run for each in found if each.run):
        if run.shards in exact and exact[run.shards].suits(run):
            references[run.shards] = replace(exact[run.shards], independent=True)
    return references
