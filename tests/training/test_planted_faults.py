"""Each promise on checkpoints and records: kept by the code, and seen where a mistake breaks it."""

import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import planted
import pytest
from hurt_runs import Disturbed, Hurt, terminated
from killed_runs import Case
from numpy_concise import NumpyConcise
from writes import written

from common.base import files
from common.base.errors import RunError

CONCISE = Case("concise", 2, ("--width=1", "--batch-norm=per-device"))


def goes_on_with_the_same_bits(hurt: Hurt, stops: int) -> None:
    """Stopped before or in a step, a run goes on, and ends as one that was never stopped."""
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
def test_a_run_goes_on_with_the_same_bits(hurt: Hurt, stops: int) -> None:
    goes_on_with_the_same_bits(hurt, stops)


@pytest.mark.parametrize(
    ("plant", "stops"), [(planted.plant_a_forgotten_place, 2), (planted.plant_a_forgotten_epoch, 3)]
)
def test_a_forgotten_place_in_the_data_is_seen(
    hurt: Hurt, plant: Callable[[pytest.MonkeyPatch], None], stops: int
) -> None:
    plant(hurt.monkeypatch)
    with pytest.raises(AssertionError):
        goes_on_with_the_same_bits(hurt, stops)


def test_running_statistics_go_on_too(hurt: Hurt) -> None:
    hurt.turn(CONCISE, NumpyConcise)
    goes_on_with_the_same_bits(hurt, 2)


@pytest.mark.parametrize("chapter", [planted.WithoutStatistics, planted.WithoutAnyStatistics])
def test_running_statistics_that_are_not_saved_are_seen(
    hurt: Hurt, chapter: Callable[[], NumpyConcise]
) -> None:
    hurt.turn(CONCISE, chapter)
    with pytest.raises(AssertionError):
        goes_on_with_the_same_bits(hurt, 2)


def survives_a_kill_within_each_write(hurt: Hurt) -> None:
    """Killed with half a file on the disk, a run goes on, and an earlier record is what it was."""
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


def test_a_kill_within_a_write_loses_nothing(hurt: Hurt) -> None:
    survives_a_kill_within_each_write(hurt)


@pytest.mark.parametrize(
    "plant",
    [
        planted.plant_writing_in_place,
        planted.plant_a_replaced_record,
        planted.plant_no_second_name,
    ],
)
def test_what_loses_something_is_seen(
    hurt: Hurt, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(hurt.monkeypatch)
    with pytest.raises((AssertionError, RunError)):
        survives_a_kill_within_each_write(hurt)


def leaves_a_good_record(hurt: Hurt) -> None:
    """A run that fails, or is stopped, leaves an earlier record that is complete."""
    earlier = hurt.earlier("hurt")
    for then in (terminated, fails):
        hurt.chapter = partial(Disturbed, 2, then)
        assert hurt.run(f"--out={hurt.folder / 'hurt'}") in (1, 143)
        hurt.require_kept("hurt", earlier)


def fails() -> None:
    """What a framework may do."""
    raise ValueError("no such kernel")


def test_a_failed_run_leaves_a_good_record(hurt: Hurt) -> None:
    leaves_a_good_record(hurt)


def test_a_record_that_replaces_a_good_one_is_seen(hurt: Hurt) -> None:
    planted.plant_a_replaced_record(hurt.monkeypatch)
    with pytest.raises(AssertionError):
        leaves_a_good_record(hurt)
