"""A run in processes, as a notebook shows it: it ends, whatever happens where it is shown."""

import sys
from collections.abc import Callable
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from common.backends.devices import Process
from common.base.errors import RunError
from notebooks.classroom.runs import Member, in_processes

LARGE = "x" * 500_000  # more than a pipe holds


class Chapter:
    """A chapter whose process tells something large, and then maybe fails."""

    def __init__(self, fails: bool) -> None:
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


@pytest.mark.parametrize(
    ("fails", "kind", "words"),
    [(False, ValueError, "no room to draw"), (True, RunError, "was ended")],
)
def test_what_fails_is_an_error_and_nothing_hangs(
    fails: bool, kind: type[Exception], words: str
) -> None:
    work: Any = SimpleNamespace(request=SimpleNamespace(wanted=None, options=None))
    broken = Mock(hear=Mock(side_effect=ValueError("no room to draw")))
    with pytest.raises(kind, match=words):
        in_processes(Chapter(fails), work, broken)  # type: ignore[arg-type]
