"""Runs that are stopped, killed within a write, or fail: what they resume to, and leave."""

import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hurt_runs import Disturbed, Hurt, terminated
from killed_runs import Case
from numpy_concise import NumpyConcise
from writes import written

from common.base import files

CONCISE = Case("concise", 2, ("--width=1", "--batch-norm=per-device"))


def resumes_with_the_same_bits(hurt: Hurt, stops: int) -> None:
    """Stopped before or in a step, a run resumes, and ends as one that was never stopped."""
    chapter = hurt.chapter
    assert hurt.kept("whole") == 0, hurt.said
    hurt.chapter = disturbed(chapter(), stops)
    assert hurt.kept("hurt") == 143, hurt.said
    hurt.chapter = chapter
    assert hurt.kept("hurt") == 0, hurt.said
    hurt.runner.require_same("whole", "hurt")


def disturbed(chapter: Any, stops: int) -> Callable[[], Any]:
    """The same chapter; somebody asks it to stop in the step of that number."""
    step, left = chapter.train_batch, iter(range(stops, -100, -1))

    def train_batch(*arguments: Any) -> Any:
        if next(left) == 1:
            terminated()
        return step(*arguments)

    chapter.train_batch = train_batch
    return lambda: chapter


@pytest.mark.parametrize("stops", [1, 3, 5])
def test_a_run_resumes_with_the_same_bits(hurt: Hurt, stops: int) -> None:
    resumes_with_the_same_bits(hurt, stops)


def test_running_statistics_are_resumed_too(hurt: Hurt) -> None:
    hurt.turn(CONCISE, NumpyConcise)
    resumes_with_the_same_bits(hurt, 2)


def test_a_kill_within_a_write_loses_nothing(hurt: Hurt) -> None:
    """Killed with half a file on the disk, a run resumes, and an earlier record is what it was."""
    with written() as writes:
        assert hurt.kept("whole") == 0, hurt.said
    earlier = hurt.earlier("earlier")
    for number in range(len(writes)):
        shutil.copytree(hurt.folder / "earlier", hurt.folder / "hurt")
        killed_within(hurt, number)
        hurt.require_kept("hurt", earlier)
        assert hurt.kept("hurt") == 0, hurt.said
        hurt.runner.require_same("whole", "hurt")
        hurt.require_tidy("hurt")
        shutil.rmtree(hurt.folder / "hurt")


def killed_within(hurt: Hurt, number: int) -> None:
    """Runs in a process of its own, which is killed within the write of that number."""
    if (child := os.fork()) == 0:
        left = iter(range(number, -100, -1))

        def cut(temporary: Path, path: Path) -> None:
            if next(left) == 0:
                os.truncate(temporary, temporary.stat().st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)

        hurt.monkeypatch.setattr(files, "_finish", cut)
        hurt.kept("hurt")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def test_a_run_that_fails_or_is_stopped_leaves_an_earlier_record_that_is_complete(
    hurt: Hurt,
) -> None:
    earlier = hurt.earlier("hurt")
    for then in (terminated, fails):
        hurt.chapter = partial(Disturbed, 2, then)
        assert hurt.run(f"--out={hurt.folder / 'hurt'}") in (1, 143)
        hurt.require_kept("hurt", earlier)


def fails() -> None:
    """What a framework may do."""
    raise ValueError("no such kernel")
