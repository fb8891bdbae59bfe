"""Runs of a chapter in NumPy that something goes wrong with, and what must be true afterwards."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from killed_runs import Case, Runner
from numpy_chapter import PLACE, NumpyChapter, standing_in

from common.data.synthetic import synthetic
from common.records.store import tensors_of
from common.training.checkpoints import checkpoints_in, read_checkpoint
from common.training.cli import main

SCRATCH = Case("scratch", 2, ())
NAME = SCRATCH.name("pytorch")
FLAGS = (
    *("--devices=2", "--dataset=synthetic", "--batch-size=8", "--train-examples=20"),
    *("--test-examples=10", "--epochs=2", "--threads=1", "--quiet"),
)
"""Two epochs of three steps."""


@dataclass
class Hurt:
    """Runs the chapter through the command line, below a folder; notes what it said."""

    monkeypatch: pytest.MonkeyPatch
    capfd: pytest.CaptureFixture[str]
    folder: Path
    chapter: Callable[[], Any] = NumpyChapter
    case: Case = SCRATCH
    said: str = ""
    runner: Runner = field(init=False)

    def __post_init__(self) -> None:
        self.move(self.folder)
        self.monkeypatch.setenv("OMP_NUM_THREADS", "1")
        self.monkeypatch.setattr("common.data.dataset.synthetic", partial(synthetic, 20, 10))

    def move(self, folder: Path) -> None:
        """From now on, runs lie below another folder."""
        self.folder = folder
        self.runner = Runner("pytorch", self.case, folder)

    def turn(self, case: Case, chapter: Callable[[], Any]) -> None:
        """From now on, it runs another chapter."""
        self.case, self.chapter = case, chapter
        self.move(self.folder)

    def run(self, *flags: str) -> int:
        """Runs with `FLAGS` and `flags`; returns the exit status."""
        name = self.case.chapter
        self.monkeypatch.setitem(sys.modules, PLACE, standing_in(self.chapter()))
        self.capfd.readouterr()
        try:
            return main("pytorch", name, [*FLAGS, *self.case.options, *flags])
        except SystemExit as end:
            return int(str(end.code))
        finally:
            self.said = self.capfd.readouterr().err

    def kept(self, name: str, *flags: str) -> int:
        """Runs with its record and its checkpoints in the folder `name`."""
        place = f"--out={self.folder / name}", f"--checkpoint-dir={self.folder / name}"
        return self.run(*place, "--checkpoint-every=2", "--resume", *flags)

    def earlier(self, name: str) -> None:
        """Leaves a complete record of another run in a folder."""
        assert self.run(f"--out={self.folder / name}", "--seed=1") == 0, self.said

    def require_one_line(self, words: str) -> None:
        """What was said is one line, which says what went wrong."""
        lines = self.said.splitlines()
        assert len(lines) == 1, self.said
        assert re.match(rf"python -m frameworks\.\w+\.\w+: error: .*({words})", lines[0]), lines

    def require_own(self, name: str) -> bool:
        """A record that says that its run is complete has its own tensors; whether one does."""
        path = self.runner.path(name)
        complete = path.exists() and self.runner.record(name).status == "complete"
        return complete and bool(self.runner.tensors(name))

    def require_tidy(self, name: str) -> None:
        """What lies in a folder is whole, or says that it is not, and nothing else is there.

        A run that is not complete may leave tensors without a record; the next run removes them.
        """
        folder, runner = self.folder / name, self.runner
        if not folder.exists():
            return
        complete = self.require_own(name)
        whole = checkpoints_in(folder, runner.name)
        for path in whole:
            read_checkpoint(path)
        known = {
            each.name for path in (runner.path(name), *whole) for each in (path, tensors_of(path))
        }
        found = {path.name for path in folder.iterdir() if complete or path.suffix == ".json"}
        assert found <= {*known, "filler"}


@pytest.fixture
def hurt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Hurt:
    """Runs of a chapter in NumPy, that something is to go wrong with."""
    return Hurt(monkeypatch, capfd, tmp_path)
