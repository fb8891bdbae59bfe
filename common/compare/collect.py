"""Reads the records of a suite, refuses what cannot be compared; what the others agree on."""

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
from common.records.store import (
    made_elsewhere,
    read_record,
    read_tensors,
    require_complete,
    require_own,
)
from common.settings.config import Config

Asked = Callable[[Config], Mapping[str, Any]]
"""What is asked of a run: each setting that it has otherwise, with the value it should have."""

Answer = tuple[tuple[str, Any], ...]
"""Settings that decide what runs have to compute, in whatever dtype."""


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


@dataclass(frozen=True)
class Reference:
    """What runs are compared with: the entry-wise median of runs with the same answer.

    `runs` is their number. They are `independent` if the runs that are compared with it are others.
    """

    name: str
    arrays: Weights
    runs: int
    independent: bool = False

    @property
    def alone(self) -> bool:
        """Whether it is one run, and so the very one that is compared with it."""
        return self.runs < 2 and not self.independent


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
        _read(folder / record_name(framework, chapter, k, way), framework, k, asked)
        for framework, k in product(frameworks, devices)
    ]
    settings = [_setting(each.run) if each.run else {} for each in found]
    counts = Counter(tuple(each.items()) for each in settings if each)
    common = dict(counts.most_common(1)[0][0]) if counts else {}
    records = [each.run.record for each in found if each.run]
    return [_like_others(*each, common, records) for each in zip(found, settings, strict=True)]


def device_counts(folder: Path, chapter: str, way: str, frameworks: Iterable[str]) -> set[int]:
    """The device counts of which `folder` has a record of any of the frameworks."""
    counts = set()
    for framework in frameworks:
        before, after = record_name(framework, chapter, ANY, way).split(ANY)
        for path in folder.glob(f"{before}{ANY}{after}"):
            counts.add(path.name.removeprefix(before).removesuffix(after))
    return {int(count) for count in counts if count.isdecimal()}


def _read(path: Path, framework: str, devices: int, asked: Asked) -> LoadedRecord:
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
        "data": record.data_sha256,
        "initial weights": record.initial_weights_sha256,
    }


def answer_of(run: Run) -> Answer:
    """What decides the numbers of a run, except for its dtype."""
    return tuple(item for item in identity(run.record).items() if item[0] != "dtype")


def _setting(run: Run) -> dict[str, Any]:
    """What all runs of a suite have in common, also those that normalize other shards."""
    config = run.record.config
    setting = {name: value for name, value in identity(run.record).items() if name != "shards"}
    spec = SPECS[config.chapter]
    # With more devices, such a preset takes larger minibatches, and larger steps.
    for name in ("batch_size", "lr") if config.preset in spec.per_device else ():
        if setting[name] == spec.preset(config.preset, config.devices)[name]:
            setting[name] = f"{spec.presets[config.preset][name]} a device"
    state = hashlib.sha256()
    for name, values in sorted(run.arrays.items()):
        if name.startswith(("trace/images/", "trace/labels/", "probe/", "test/labels")):
            state.update(f"{name}{values.shape}".encode())
            state.update(np.ascontiguousarray(values).tobytes())
    return {**setting, "minibatches": state.hexdigest()}


def _like_others(
    found: LoadedRecord,
    setting: Mapping[str, Any],
    common: Mapping[str, Any],
    records: Sequence[Record],
) -> LoadedRecord:
    """`found`, unless it is of another setting than the others, or was made elsewhere."""
    for name, value in setting.items():
        if common[name] != value:
            trouble = f"{name} is {value}, and others have {common[name]}"
            return replace(found, run=None, trouble=trouble)
    if found.run and (trouble := made_elsewhere(found.run.record, records)):
        return replace(found, run=None, trouble=trouble)
    return found


def references_of(runs: Iterable[Run]) -> dict[Answer, Reference]:
    """What runs of one dtype agree on, by what they have to compute."""
    groups: dict[Answer, list[Run]] = {}
    for run in runs:
        groups.setdefault(answer_of(run), []).append(run)
    return {
        answer: Reference(
            f"the median of {len(group)} {group[0].record.config.dtype} runs",
            median(group),
            len(group),
        )
        for answer, group in groups.items()
    }


def expected_of(
    runs: Sequence[Run], exact: Mapping[Answer, Reference], *, independent: bool
) -> dict[Answer, Reference]:
    """What each run is compared with: the `exact` result, if there is one, else their own median.

    The exact one is `independent` if these runs are no part of it.
    """
    own = references_of(runs)
    known = {answer: exact[answer] for answer in own if answer in exact}
    return own | {k: replace(each, independent=independent) for k, each in known.items()}
