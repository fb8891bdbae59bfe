"""A clock that jumps back, or stands still: what is later is not told by any clock."""

import os
import time
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest
from figures import Figures
from hurt_runs import NAME, Disturbed, Hurt, terminated
from numpy_chapter import NumpyChapter

from common.base.errors import RunError
from common.records.store import overtaken, read_record, unfinished
from common.training.checkpoints import checkpoints_in
from sessions.kills import newest

pytestmark = pytest.mark.faults

SOME_DAY, LONG_AGO = "2031-02-03T04:05:06+00:00", "2001-02-03T04:05:06+00:00"


class Unlaunched(NumpyChapter):
    """Its processes never meet."""

    def launch(self, *_: object) -> None:
        raise RunError("processes cannot meet")


@pytest.fixture
def at(hurt: Hurt) -> Callable[[str], None]:
    """Sets the clock of the runs that follow."""

    def put(moment: str) -> None:
        hurt.monkeypatch.setattr("common.training.run.now", lambda: moment)

    return put


@pytest.mark.parametrize("then", [LONG_AGO, SOME_DAY])
@pytest.mark.parametrize("ends", ["before it has begun", "on its way"])
def test_a_run_that_seems_earlier_is_the_later_one(
    hurt: Hurt, at: Callable[[str], None], figures: Figures, then: str, ends: str
) -> None:
    at(SOME_DAY)
    earlier = hurt.earlier("hurt")
    at(then)  # the very same moment, or long before
    begins = ends == "on its way"
    hurt.chapter = partial(Disturbed, 3, terminated) if begins else Unlaunched
    assert hurt.kept("hurt", "--seed=2") == (143 if begins else 1)
    hurt.require_kept("hurt", earlier)
    status = "interrupted" if begins else "failed"
    assert read_record(unfinished(hurt.path("hurt"))).status == status
    assert overtaken(hurt.path("hurt"))
    figures("clock set back")


def test_the_same_command_at_the_same_moment_is_another_run(
    hurt: Hurt, at: Callable[[str], None], figures: Figures
) -> None:
    at(SOME_DAY)
    assert hurt.run(f"--out={hurt.folder / 'hurt'}") == 0
    hurt.chapter = partial(Disturbed, 3, terminated)
    assert hurt.run(f"--out={hurt.folder / 'hurt'}") == 143
    assert hurt.record("hurt").status == "complete"
    assert read_record(unfinished(hurt.path("hurt"))).status == "interrupted"
    figures("clock set back")


def test_a_run_goes_on_from_its_last_step_whatever_the_clock_says(
    hurt: Hurt, at: Callable[[str], None], figures: Figures
) -> None:
    assert hurt.kept("whole") == 0
    at(SOME_DAY)
    hurt.chapter = partial(Disturbed, 5, terminated)
    assert hurt.kept("hurt") == 143
    there = checkpoints_in(hurt.folder / "hurt", NAME)
    for moment, path in enumerate(there):  # the last one is the oldest of all
        os.utime(path, (moment, moment))
    assert newest(hurt.folder / "hurt", NAME)["losses"] == read_record(there[0]).losses
    at(LONG_AGO)
    hurt.chapter = NumpyChapter
    assert hurt.kept("hurt") == 0
    hurt.runner.require_same("whole", "hurt")
    (again,) = hurt.record("hurt").resumed
    assert (again.step, again.started) == (5, SOME_DAY)
    figures("clock set back")


def test_no_time_is_below_0(hurt: Hurt, figures: Figures) -> None:
    backwards = count(10**9, -3600)
    hurt.monkeypatch.setattr(time, "time", lambda: float(next(backwards)))
    assert hurt.kept("hurt") == 0
    assert all(epoch.seconds > 0 for epoch in hurt.record("hurt").epochs)
    figures("clock set back")
