"""A run in processes, as a notebook shows it: it ends, whatever happens where it is shown."""

import sys
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

import pytest

from common.backends.devices import Process
from common.base.errors import RunError
from notebooks.classroom.runs import Member, in_processes

LARGE = "x" * 500_000  # more than a pipe holds


class Broken:
    """A display that shows nothing."""

    def hear(self, *told: Any) -> None:
        raise ValueError("no room to draw")


class Chapter:
    """A chapter whose process tells something large, and then maybe fails."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def launch(self, worker: Callable[[Process], None], *_: Any) -> None:
        process = get_context("fork").Process(target=self.work, args=(worker,))
        process.start()
        process.join(20)
        assert process.exitcode is not None, "it hangs"
        if process.exitcode:
            raise RunError("the process of device 0 was ended")

    def work(self, worker: Member) -> None:
        worker.tell("notice", LARGE)
        if self.fails:
            sys.exit(3)
        worker.line.send(("outcome", "done"))


class Work:
    """Nothing of it is looked at before the process starts."""

    class request:  # noqa: N801
        wanted = options = None


def run(chapter: Chapter) -> Any:
    return in_processes(chapter, Work, Broken())  # type: ignore[arg-type]


def test_a_display_that_breaks_is_an_error_and_stops_no_process() -> None:
    with pytest.raises(ValueError, match="no room to draw"):
        run(Chapter())


def test_a_process_that_fails_is_an_error() -> None:
    with pytest.raises(RunError, match="was ended"):
        run(Chapter(fails=True))
