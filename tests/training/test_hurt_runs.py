"""Runs that are stopped or killed within a write: what they resume to, and leave."""

import os
import shutil
import signal
from itertools import product
from pathlib import Path
from typing import Any

from fake_chapter import CommandLine, start as start
from hurt_runs import RUNNER, kept, require_tidy, writes
from killed_runs import Case, Runner
from numpy_chapter import NumpyConcise

FLAGS = ("--width=1", "--batch-norm=per-device", "--steps=3", "--quiet", "--resume")


class Stopped(NumpyConcise):
    """Is asked to stop in its second step."""

    steps = 0

    def train_batch(self, *arguments: Any) -> float:
        self.steps += 1
        if self.steps == 2:
            signal.raise_signal(signal.SIGTERM)
        return super().train_batch(*arguments)


def test_a_run_resumes_with_the_same_bits(start: CommandLine) -> None:
    """Running statistics are resumed, too."""
    for name, chapters in (("whole", [NumpyConcise]), ("hurt", [Stopped, NumpyConcise])):
        for chapter in chapters:
            flags = (*FLAGS, f"--out={name}", f"--checkpoint-dir={name}")
            status = start(*flags, chapter=chapter(), name="concise")
            assert status == (143 if chapter is Stopped else 0)
    Runner("pytorch", Case("concise", 3, ()), Path()).require_same("whole", "hurt")


def test_a_kill_within_a_write_loses_nothing(start: CommandLine) -> None:
    """Killed in a write or just after it, a run resumes; no record has another's tensors."""
    with writes(lambda *_: None) as names:
        assert kept(start, "whole") == 0
    assert start("--quiet", "--steps=5", "--seed=1", "--out=earlier") == 0
    for number, whole in product(range(len(names)), (False, True)):
        shutil.copytree("earlier", "hurt")
        killed_at(start, number, whole=whole)
        record = RUNNER.record("hurt")
        assert record.status != "complete" or RUNNER.tensors("hurt")
        assert kept(start, "hurt") == 0
        RUNNER.require_same("whole", "hurt")
        require_tidy(Path("hurt"))
        shutil.rmtree("hurt")


def killed_at(start: CommandLine, number: int, *, whole: bool) -> None:
    """Runs in a process that is killed at the write of that number: half of it is there, or all."""

    def kill(at: int, temporary: Path, path: Path) -> None:
        if at == number:
            if whole:
                temporary.replace(path)
            else:
                os.truncate(temporary, temporary.stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    if (child := os.fork()) == 0:
        with writes(kill):
            kept(start, "hurt")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
