"""Checkpoints: a run's way so far as a record that says "running", and its tensors beside it.

By name in the tensors: `state/NAME`, what the chapter saves; `test/predictions`, the class that
each finished epoch ends with for each test image; `epoch/seconds`, those of training in the epoch
under way; and the trace of `common.records.trace`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from common.base.arrays import Weights
from common.base.errors import RunError
from common.records.record import Record, files_of
from common.records.store import read_record, read_tensors, write_failure, write_record


class Checkpoint(NamedTuple):
    """A whole checkpoint: the path of its record, the record, and its tensors."""

    path: Path
    record: Record
    tensors: Weights


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

    def write(self, tensors: Weights) -> None:
        """Writes a checkpoint, and removes all but this and the last one. Raises RunError.

        Should the disk lose this one, there is another. A run that has resumed and stops before
        its next step has nothing new to write.
        """
        name = self.record.name()
        path = self.folder / f"{name}-step{len(self.record.losses)}.json"
        if not self.writes or path == self.last:
            return
        write_record(path, self.record, tensors)
        kept = {self.last and self.last.stem, path.stem}
        files, self.last = files_of(name), path
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
