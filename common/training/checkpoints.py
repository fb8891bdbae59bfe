"""Checkpoints: a run's way so far as a record that says "running", and its tensors beside it.

By name in the tensors: `state/NAME`, what the chapter saves; `test/predictions`, the class that
each finished epoch ends with for each test image; `epoch/seconds`, those of training in the epoch
under way; and the trace of `common.records.trace`.
"""

import re
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path

import numpy as np

from common.base.arrays import Array, Weights
from common.records.checkpoint import require_whole
from common.records.record import Record, files_of
from common.records.store import (
    read_record,
    read_tensors,
    recover,
    tensors_of,
    write_failure,
    write_record_as,
)
from common.training.progress import Progress

KEPT = 2
"""As many checkpoints stay: should the disk lose the last one, there is another."""


@dataclass(frozen=True)
class Checkpoint:
    """A whole checkpoint: the path of its record, the record, and its tensors."""

    path: Path
    record: Record
    tensors: Weights

    def state(self) -> Weights:
        """What the chapter has saved."""
        return self._below("state/")

    def trace(self) -> Weights:
        """The trace so far."""
        return {f"trace/{name}": values for name, values in self._below("trace/").items()}

    def tell(self, progress: Progress) -> None:
        """Lets the progress of a run be that of the checkpoint."""
        progress.losses[:] = self.record.losses
        progress.epochs[:] = self.record.epochs
        progress.predictions[:] = self.tensors.get("test/predictions", ())
        progress.seconds = float(self.tensors["epoch/seconds"][0])

    def _below(self, prefix: str) -> Weights:
        return {
            name.removeprefix(prefix): values
            for name, values in self.tensors.items()
            if name.startswith(prefix)
        }


@dataclass
class Checkpoints:
    """Where a run leaves checkpoints, how often, and as whose: `record` is the run's.

    `every` so many steps; None: at the end of each epoch. Only a run's first process `writes`. It
    resumes from the one that was `found`. `whole` are those that stay, the newest last: `newest`
    says how many losses and epochs that one has.
    """

    folder: Path
    every: int | None
    record: Record
    writes: bool
    found: InitVar[Checkpoint | None] = None
    whole: list[Path] = field(default_factory=list)
    newest: tuple[int, int] = (0, 0)

    def __post_init__(self, found: Checkpoint | None) -> None:
        """What the run resumes from stays, if it is its own; others do until one is written."""
        own = self.folder, self.record.name()
        if found is not None and (found.path.parent, found.record.name()) == own:
            self.newest = len(found.record.losses), len(found.record.epochs)
            self.whole = [found.path]

    def due(self, step: int, *, ends: bool) -> bool:
        """Whether one is written after a step; `ends`: which has ended an epoch."""
        return ends if self.every is None else step % self.every == 0

    def behind(self, progress: Progress) -> bool:
        """Whether the run has come further than its newest checkpoint."""
        return self.newest != (len(progress.losses), len(progress.epochs))

    def write(
        self, progress: Progress, saved: Mapping[str, Array], trace: Mapping[str, Array]
    ) -> None:
        """Writes one; then all but this and the one before it go. Raises RunError if it cannot."""
        self.newest = len(progress.losses), len(progress.epochs)
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
        for each in self.whole:
            recover(each)
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
