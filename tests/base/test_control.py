"""Why a process failed arrives elsewhere as it was."""

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from common.base.control import LIMIT, SAID, Failure, Group, failure_by, start_member
from common.base.errors import RunError, UnforeseenError
from common.base.signals import Stop


def test_a_failure_arrives_as_it_was() -> None:
    error = RunError("no number ü\ud800", step=3, tensor="fc1.bias", device=2)
    found = Failure(*json.loads(json.dumps(failure_by(error, details="a line\n"))))
    assert (found.order, found.details) == (SAID, "a line\n")
    assert (type(found.error()), str(found.error())) == (RunError, str(error))
    assert vars(found.error()) == vars(error)


def killing(number: int) -> None:
    faulthandler.disable()  # pytest's would print where every thread stands
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("work", "message", "kind"),
    [
        (lambda _: 1 / 0, "a process failed: ZeroDivisionError: division by", UnforeseenError),
        (lambda _: killing(signal.SIGKILL), "the process was ended by SIGKILL", RunError),
        (lambda _: os._exit(3), "the process was ended with status 3", RunError),
        (lambda _: killing(signal.SIGSEGV), "the process was ended by SIG", UnforeseenError),
        (lambda _: 3, "", None),
    ],
)
@pytest.mark.skipif(sys.platform == "darwin", reason="no lambda can be sent to a new process")
def test_how_a_process_ends_is_known(
    work: Callable[[object], object], message: str, kind: type[RunError] | None
) -> None:
    failure = Group({0: start_member("the process", work)}, Stop()).run()
    error = failure and failure.error()
    assert (error and type(error)) is kind
    assert str(error or "").startswith(message)


@pytest.mark.parametrize("each", [0.1, 1.05])
def test_a_process_is_silent_fifteen_seconds_after_its_last_word(
    monkeypatch: pytest.MonkeyPatch, each: float
) -> None:
    """Those do not count in which the watch itself was frozen."""
    now = [1000.0]
    monkeypatch.setattr("common.base.control.time", SimpleNamespace(monotonic=lambda: now[0]))
    group = Group({}, Stop())
    group.mail = SimpleNamespace(get=lambda timeout: (2, {"alive": True}))  # type: ignore[assignment]
    group.missed, group.names = {1: 0, 2: 0}, {1: "it"}
    now[0] += 3600
    group.listen()
    assert not group.ends
    began = now[0]
    while not group.ends:
        now[0] += each
        group.listen()
    assert [*group.ends] == [1]
    assert LIMIT - 1 <= now[0] - began <= LIMIT * max(1, each) + each
