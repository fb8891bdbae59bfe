"""Runs that are stopped, killed within a write, or fail: what they resume to, and leave."""

import os
import shutil
import signal
from itertools import product
from pathlib import Path
from typing import Any

from hurt_runs import Hurt
from killed_runs import Case
from numpy_chapter import NumpyConcise
from writes import written

from common.base import files

CONCISE = Case("concise", 2, ("--width=1", "--batch-norm=per-device"))


class Stopped(NumpyConcise):
    """Is asked to stop in its second step."""

    steps = 0

    def train_batch(self, *arguments: Any) -> float:
        self.steps += 1
        if self.steps == 2:
            signal.raise_signal(signal.SIGTERM)
        return super().train_batch(*arguments)


def test_a_run_resumes_with_the_same_bits(hurt: Hurt) -> None:
    """Running statistics are resumed, too."""
    hurt.turn(CONCISE, NumpyConcise)
    assert hurt.kept("whole") == 0, hurt.said
    hurt.chapter = Stopped
    assert hurt.kept("hurt") == 143, hurt.said
    hurt.chapter = NumpyConcise
    assert hurt.kept("hurt") == 0, hurt.said
    hurt.runner.require_same("whole", "hurt")


def test_a_kill_within_a_write_loses_nothing(hurt: Hurt) -> None:
    """Killed in a write or just after it, a run resumes; no record has another's tensors."""
    with written() as writes:
        assert hurt.kept("whole") == 0, hurt.said
    hurt.earlier("earlier")
    for number, whole in product(range(len(writes)), (False, True)):
        shutil.copytree(hurt.folder / "earlier", hurt.folder / "hurt")
        killed_at(hurt, number, whole=whole)
        hurt.require_own("hurt")
        assert hurt.kept("hurt") == 0, hurt.said
        hurt.runner.require_same("whole", "hurt")
        hurt.require_tidy("hurt")
        shutil.rmtree(hurt.folder / "hurt")


def killed_at(hurt: Hurt, number: int, *, whole: bool) -> None:
    """Runs in a process that is killed at the write of that number: half of it is there, or all."""
    if (child := os.fork()) == 0:
        left = iter(range(number, -100, -1))

        def cut(temporary: Path, path: Path) -> None:
            if next(left) == 0:
                if whole:
                    temporary.replace(path)
                else:
                    os.truncate(temporary, temporary.stat().st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)

        hurt.monkeypatch.setattr(files, "_finish", cut)
        hurt.kept("hurt")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
