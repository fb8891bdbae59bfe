"""Checkpoints: a run's way so far as a record that says "running", and its tensors beside it.

By name in the tensors: `state/NAME`, what the chapter saves; `test/predictions`, the class that
each finished epoch ends with for each test image; `epoch/seconds`, those of training in the epoch
under way; and the trace of `common.records.trace`.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from common.base.arrays import Array, Weights
from common.base.errors import RunError
from common.records.record import Epoch, Record, files_of
from common.records.store import read_record, read_tensors, write_failure, write_record


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

    def restore(self, progress: Progress) -> None:
        """Sets the progress of a run to that of the checkpoint."""
        progress.losses[:] = self.record.losses
        progress.epochs[:] = self.record.epochs
        progress.predictions[:] = self.tensors.get("test/predictions", ())
        progress.seconds = float(self.tensors["epoch/seconds"][0])


@dataclass
class Checkpoints:
    """Where a run leaves checkpoints, how often, and as whose: `record` is the run's.

    `every` so many steps; None: at the end of each epoch. Only a run's first process `writes`.
    `last` is the newest one: at first that from which it resumes, if any.
    """

    folder: Path
    every: int | None
    record: Record
    writes: bool
    last: Path | None

    def due(self, step: int, *, ends: bool) -> bool:
        """Whether one is written after a step; `ends`: which has ended an epoch."""
        return ends if self.every is None else step % self.every == 0

    def write(
        self, progress: Progress, saved: Mapping[str, Array], trace: Mapping[str, Array]
    ) -> None:
        """Writes a checkpoint, and removes all but this and the last one. Raises RunError.

        Should the disk lose this one, there is another. A run that has resumed and stops before
        its next step has nothing new to write.
        """
        path = self.folder / f"{self.record.name()}-step{len(progress.losses)}.json"
        if not self.writes or path == self.last:
            return
        so_far = {"losses": progress.losses, "epochs": progress.epochs}
        record = self.record.model_copy(update=so_far)
        tensors = {f"state/{name}": np.asarray(values) for name, values in saved.items()}
        tensors["epoch/seconds"] = np.array([progress.seconds])
        if progress.predictions:
            tensors["test/predictions"] = np.stack(progress.predictions)
        write_record(path, record, tensors | dict(trace))
        kept = {self.last and self.last.stem, path.stem}
        files, self.last = files_of(record.name()), path
        with write_failure(path):
            # A record goes before its tensors, so that it never stands without them.
            for file in sorted(self.folder.iterdir(), key=lambda file: file.suffix):
                match = files.fullmatch(file.name)
                if match and match[1] and file.stem not in kept:
                    file.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint whose record is at `path`. Raises RunError that says why it is none."""
    record = read_record(path)
    if record.status != "running":
        raise RunError(f"{path} is no checkpoint to resume from: the run is {record.status}")
    return Checkpoint(path, record, read_tensors(path, record))


def checkpoints_in(folder: Path, name: str) -> list[Path]:
    """The checkpoints of a run of this name in a folder, by their steps, the newest first."""
    names = files_of(name)
    found = [(names.fullmatch(path.name), path) for path in folder.glob("*-step*.json")]
    steps = {int(match[1]): path for match, path in found if match}
    return [steps[step] for step in sorted(steps, reverse=True)]
