"""Checkpoints: a run's way so far as a record that says "running", and its tensors beside it.

By name in the tensors: `state/NAME`, what the chapter saves; `test/predictions`, the class that
each finished epoch ends with for each test image; `epoch/seconds`, those of training in the epoch
under way; and the trace of `common.records.trace`.
"""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array, Weights
from common.base.errors import RunError
from common.models.nets import trainable
from common.records.record import Epoch, Record, files_of
from common.records.store import (
    read_record,
    read_tensors,
    recover,
    tensors_of,
    write_failure,
    write_record_as,
)
from common.records.trace import trace_shapes
from common.records.trust import inconsistencies

KEPT = 2
"""As many checkpoints stay: should the disk lose the last one, there is another."""


@dataclass
class Progress:
    """The loss of every step so far, and of every finished epoch its figures and predictions.

    `seconds` are those of training in the epoch under way, between each `start` and `stop`.
    """

    losses: list[float] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    predictions: list[Array] = field(default_factory=list)
    seconds: float = 0.0
    started: float = 0.0

    def start(self) -> None:
        """Training begins, or resumes."""
        self.started = time.perf_counter()

    def stop(self) -> None:
        """Something else begins."""
        self.seconds += time.perf_counter() - self.started


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint: the path of its record, the record, and its tensors."""

    path: Path
    record: Record
    tensors: Weights

    def trace(self) -> Weights:
        """The trace so far."""
        return {k: values for k, values in self.tensors.items() if k.startswith("trace/")}

    def tell(self, progress: Progress) -> None:
        """Lets the progress of a run be that of the checkpoint."""
        progress.losses[:] = self.record.losses
        progress.epochs[:] = self.record.epochs
        progress.predictions[:] = self.tensors.get("test/predictions", ())
        progress.seconds = float(self.tensors["epoch/seconds"][0])


@dataclass
class Checkpoints:
    """Where a run leaves checkpoints, how often, and as whose: `record` is the run's.

    `every` so many steps; None: at the end of each epoch. Only a run's first process `writes`.
    `whole` are those that stay, the newest last: at first the one that it resumes from, if any.
    """

    folder: Path
    every: int | None
    record: Record
    writes: bool
    whole: list[Path]

    def __post_init__(self) -> None:
        """Ends what the process that wrote them may not have come to. Raises RunError."""
        for path in self.whole if self.writes else ():
            with write_failure(path):
                recover(path)

    def due(self, step: int, *, ends: bool) -> bool:
        """Whether one is written after a step; `ends`: which has ended an epoch."""
        return ends if self.every is None else step % self.every == 0

    def write(
        self, progress: Progress, saved: Mapping[str, Array], trace: Mapping[str, Array]
    ) -> None:
        """Writes one; then all but this and the one before it go. Raises RunError if it cannot."""
        if not self.writes:
            return
        so_far = {"losses": progress.losses, "epochs": progress.epochs}
        record = self.record.model_copy(update=so_far)
        tensors = {f"state/{name}": np.asarray(values) for name, values in saved.items()}
        tensors["epoch/seconds"] = np.array([progress.seconds])
        if progress.predictions:
            tensors["test/predictions"] = np.stack(progress.predictions)
        path = self.folder / checkpoint_name(record)
        with write_failure(path):
            write_record_as(path, record, tensors | dict(trace))
            self.whole = [*(each for each in self.whole if each != path), path][-KEPT:]
            self._prune()

    def _prune(self) -> None:
        """Removes all other checkpoints of the run's name, and parts of any."""
        kept = {name for each in self.whole for name in (each.name, tensors_of(each).name)}
        files = files_of(self.record.name())
        # A record goes before its tensors, so that it never stands without them.
        for path in sorted(self.folder.iterdir(), key=lambda path: path.suffix):
            found = files.fullmatch(path.name)
            if found and found.group(1) and path.name not in kept:
                path.unlink(missing_ok=True)


def checkpoint_name(record: Record) -> str:
    """The name of the checkpoint that a run leaves after as many steps as it has losses."""
    return f"{record.name()}-step{len(record.losses)}.json"


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint whose record is at `path`. Raises RunError that says why it is none."""
    record = read_record(path)
    tensors = read_tensors(path, record)
    require_whole(path, record, tensors)
    return Checkpoint(path, record, tensors)


def checkpoints_in(folder: Path, name: str) -> list[Path]:
    """The checkpoints of a run of this name in a folder, by their steps, the newest first."""
    if not folder.is_dir():
        return []
    names = re.compile(rf"{re.escape(name)}-step([1-9]\d*)\.json")
    found = {
        int(match.group(1)): path
        for path in folder.iterdir()
        if (match := names.fullmatch(path.name))
    }
    return [found[step] for step in sorted(found, reverse=True)]


def require_whole(path: Path, record: Record, tensors: Mapping[str, Array]) -> None:
    """Raises RunError if a run could not resume from this record and its tensors."""
    for trouble in _troubles(record, tensors):
        raise RunError(f"{path} is no checkpoint to resume from: {trouble}")


def _troubles(record: Record, tensors: Mapping[str, Array]) -> Iterator[str]:
    if record.framework not in FRAMEWORKS:  # where is the code that wrote it?
        yield f"its framework, {record.framework}, is not known here"
        return
    if record.status != "running":
        yield f"the run is {record.status}"
    if not record.losses:
        yield "it has no losses"
    yield from inconsistencies(record)
    wanted = _shapes(record, tensors)
    if odd := sorted(tensors.keys() ^ wanted.keys()):
        yield f"{odd[0]} is {'missing' if odd[0] in wanted else 'not expected'}"
        return
    for name, values in tensors.items():
        shape, dtypes = wanted[name]
        if values.shape != shape or values.dtype.name not in dtypes:
            yield f"{name} is {values.dtype} {values.shape}, not {' or '.join(dtypes)} {shape}"
        elif not np.isfinite(values).all():
            yield f"{name} is not finite"
    if tensors["epoch/seconds"].min(initial=0) < 0:
        yield "the seconds of its epoch are below 0"


def _shapes(
    record: Record, tensors: Mapping[str, Array]
) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
    """The shape and the dtypes of every tensor; running statistics may be those of any devices."""
    config, done = record.config, len(record.losses)
    trained_in, either = (config.dtype,), ("float32", "float64")
    wanted: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {"epoch/seconds": ((1,), either)}
    for name, shape in config.shapes().items():
        wanted[f"state/{name}"] = (shape, trained_in)
        if not trainable(name):  # a framework may keep them in double precision
            found = tensors.get(f"state/{name}", np.empty(1))
            wanted[f"state/{name}"] = ((max((1, *found.shape[:1])), *shape), either)
    for name, shape in config.velocities().items():
        wanted[f"state/momentum/{name}"] = (shape, trained_in)
    if record.epochs:
        wanted["test/predictions"] = ((len(record.epochs), config.test_examples), ("uint8",))
    for name, shape in trace_shapes(config).items():
        _, kind, step, *_ = name.split("/")
        if int(step) <= done:
            wanted[name] = (shape, ("uint8",) if kind in ("images", "labels") else trained_in)
    return wanted
