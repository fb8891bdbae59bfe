"""Runs of a chapter in NumPy that something goes wrong with, and what must be true afterwards."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_chapter import CommandLine
from killed_runs import Case, Runner
from numpy_chapter import NumpyChapter

from common.base import files
from common.records.store import tensors_of
from common.training.checkpoints import checkpoints_in, read_checkpoint

RUNNER = Runner("pytorch", Case("scratch", 3, ()), Path())


def kept(start: CommandLine, name: str, *flags: str) -> int:
    """Runs five steps, with the record and checkpoints in a folder; the exit status."""
    own = f"--out={name}", f"--checkpoint-dir={name}", "--checkpoint-every=2", "--resume"
    return start("--quiet", "--steps=5", *own, *flags, chapter=NumpyChapter())


@contextmanager
def writes(strike: Callable[[int, Path, Path], object]) -> Iterator[list[str]]:
    """The names of files written meanwhile; calls `strike` when one is written but not in place.

    It gets the number of the write, from 0, the temporary file and the path.
    """
    names: list[str] = []
    finish: Callable[[Path, Path], None] = vars(files)["_finish"]

    def finish_struck(temporary: Path, path: Path) -> None:
        names.append(path.name)
        strike(len(names) - 1, temporary, path)
        finish(temporary, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_finish", finish_struck)
        yield names


def require_tidy(folder: Path) -> None:
    """What lies in a folder is whole, or says that it is not, and nothing else is there.

    A run that is not complete may leave tensors without a record; the next run removes them.
    """
    record, whole = folder / f"{RUNNER.name}.json", checkpoints_in(folder, RUNNER.name)
    complete = record.exists() and RUNNER.record(folder.name).status == "complete"
    assert not complete or RUNNER.tensors(folder.name)
    for path in whole:
        read_checkpoint(path)
    known = {file.name for path in (record, *whole) for file in (path, tensors_of(path))}
    found = {path.name for path in folder.glob("*") if complete or path.suffix == ".json"}
    assert found <= known, found - known
