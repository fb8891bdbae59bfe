"""Finds the records of a suite and decides which of them can be trusted."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from common.checks import Run
from common.errors import RunError
from common.record import Record, read_record, read_tensors, source_digest
from common.training import number_of_epochs

RAISED: Final = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)\b")
"""How the line of a traceback begins that says what was raised."""


@dataclass(frozen=True)
class Found:
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
    frameworks: Iterable[str],
    devices: Iterable[int],
    settings: dict[str, Any],
) -> list[Found]:
    """One entry for each expected record, in order; `settings` is what the suite asked for."""
    counts = list(devices)
    found = [_find(folder, name, chapter, k) for name in frameworks for k in counts]
    records = [each.run.record for each in found if each.run]
    common = {
        shards: _most_common([each for each in records if each.config.shards() == shards])
        for shards in {record.config.shards() for record in records}
    }
    return [_compared(each, common, settings) for each in found]


def device_counts(folder: Path, chapter: str, frameworks: Iterable[str]) -> list[int]:
    """The device counts of which `folder` has a record of any of the frameworks, and 1.

    Empty if there are no records at all.
    """
    counts: set[int] = set()
    for framework in frameworks:
        for path in folder.glob(f"{framework}-{chapter}-*dev.json"):
            count = path.stem.removeprefix(f"{framework}-{chapter}-").removesuffix("dev")
            counts |= {int(count)} if count.isdecimal() else set()
    return sorted(counts | {1}) if counts else []


def _find(folder: Path, framework: str, chapter: str, devices: int) -> Found:
    path = folder / f"{framework}-{chapter}-{devices}dev.json"
    if not path.is_file():
        return Found(framework, devices, None, f"there is no {path}")
    record = None
    try:
        record = read_record(path)
        if trouble := _distrust(record, framework, chapter, devices):
            raise RunError(f"{trouble} ({path})")
        arrays = read_tensors(path, record)
    except RunError as error:
        return Found(framework, devices, None, str(error), record)
    run = Run(record, {**arrays, "losses": np.array(record.losses)})
    return Found(framework, devices, run, record=record)


def _distrust(record: Record, framework: str, chapter: str, devices: int) -> str:
    """Why a record is not what its name says, or is stale; empty if it is fine."""
    if record.status != "complete":
        return _unfinished(record)
    if (record.framework, record.chapter) != (framework, chapter):
        return f"is of {record.framework} {record.chapter}"
    if {record.config.devices, len(record.devices)} != {devices}:
        return f"ran on {len(record.devices)} devices"
    if record.source_sha256 != source_digest(framework):
        return "stale, as the code has changed since: run it again"
    if len(record.epochs) != (planned := number_of_epochs(record.config)):
        return f"has the figures of {len(record.epochs)} epochs, of {planned}"
    return ""


def _unfinished(record: Record) -> str:
    """What became of a run that is not complete; if it failed, what its traceback ends with."""
    if record.status != "failed":
        return f"the run is {record.status}, not complete"
    lines = [line for line in (record.failure or "").splitlines() if line.strip()]
    raised = [line for line in lines if RAISED.match(line)]
    last = ([*lines, *raised] or ["it does not say why"])[-1]
    return f"the run failed: {last.removeprefix('common.errors.RunError: ')}"


def identity(record: Record) -> dict[str, Any]:
    """What has to be the same in all records that are compared."""
    return {
        **record.config.mathematics(),
        "data": record.data.sha256,
        "initial weights": record.initial_weights_sha256,
    }


def _most_common(records: Sequence[Record]) -> dict[str, Any]:
    identities = Counter(tuple(identity(record).items()) for record in records)
    return dict(identities.most_common(1)[0][0]) if identities else {}


def _compared(
    found: Found, common: dict[int | None, dict[str, Any]], settings: dict[str, Any]
) -> Found:
    """`found`, unless it is of another configuration than the others or than was asked for."""
    if found.run is None:
        return found
    config = found.run.record.config.model_dump()
    for key, value in settings.items():
        if config[key] != value:
            trouble = f"{key} is {config[key]}, and the suite asks for {value}"
            return replace(found, run=None, trouble=trouble)
    expected = common[found.run.record.config.shards()]
    for key, value in identity(found.run.record).items():
        if expected[key] != value:
            trouble = f"{key} is {value}, and most others have {expected[key]}"
            return replace(found, run=None, trouble=trouble)
    return found
