"""A run in processes, as a notebook shows it: it ends, whatever happens where it is shown."""

import sys
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

import pytest

from common.backends.devices import Process
from common.base.errors import RunError
from notebooks.classroom.runs import Member, in_processes, main_not_repeated

LARGE = "x" * 500_000  # more than a pipe holds


class Shown:
    """What a notebook has been told; it may break."""

    def __init__(self, breaks: bool) -> None:
        self.breaks, self.heard = breaks, list[Any]()

    def hear(self, *told: Any) -> None:
        self.heard.append(told)
        if self.breaks:
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


def run(chapter: Chapter, shown: Shown) -> Any:
    return in_processes(chapter, Work, shown)  # type: ignore[arg-type]


def test_what_is_told_is_shown_and_the_outcome_comes_back() -> None:
    shown = Shown(breaks=False)
    assert run(Chapter(), shown) == "done"
    assert shown.heard == [("notice", LARGE)]


def test_a_display_that_breaks_is_an_error_and_stops_nobody() -> None:
    with pytest.raises(ValueError, match="no room to draw"):
        run(Chapter(), Shown(breaks=True))


def test_a_process_that_fails_is_an_error() -> None:
    with pytest.raises(RunError, match="was ended"):
        run(Chapter(fails=True), Shown(breaks=False))


def test_a_script_is_not_run_again_by_its_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__file__", "script.py", raising=False)
    with main_not_repeated():
        assert not hasattr(main, "__file__")
    assert main.__file__ == "script.py"
