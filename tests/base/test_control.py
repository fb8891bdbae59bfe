"""How a process ended arrives elsewhere as it was; one that is silent for too long is found."""

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from common.base.control import LIMIT, Group, start_member
from common.base.endings import SAID, Ending, cause, from_plain, killed, to_plain
from common.base.errors import RequestError, RunError, StoppedError, UnforeseenError
from common.base.signals import Stop


@pytest.mark.parametrize(
    "error",
    [
        RunError("no number ü\ud800", step=3, tensor="fc1.bias", device=2),
        RequestError("ask otherwise"),
        UnforeseenError("a process failed: OSError"),
        StoppedError("stopped", status=130, step=4),
    ],
)
def test_an_ending_arrives_as_it_was(error: RequestError | RunError) -> None:
    plain = json.dumps(to_plain(Ending(SAID, error, "a line\n"), "process 1: "))
    found = from_plain(json.loads(plain))
    assert found
    assert (found.order, found.details) == (SAID, "a line\n")
    assert type(found.error) is type(error)
    assert (str(found.error), vars(found.error)) == (f"process 1: {error}", vars(error))


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
    ending = Group({0: start_member("the process", work)}, Stop()).run()
    assert (ending and type(ending.error)) is kind
    assert ending is None or str(ending.error).startswith(message)


def test_processes_that_were_asked_to_stop_did_so_by_the_signal_that_came() -> None:
    stop = Stop()
    stop.number = signal.SIGINT
    said = Ending(SAID, RunError("a cause"), "")
    assert cause(said, stop) is said.error
    stopped = Ending(SAID, StoppedError("stopped", status=143, step=3), "")
    for ending, step in ((stopped, 3), (killed("was ended by SIGKILL"), None)):
        found = cause(ending, stop)
        assert isinstance(found, StoppedError)
        assert (found.status, found.step) == (130, step)


@pytest.mark.parametrize("each", [0.3, 1.05])
def test_a_process_is_silent_fifteen_seconds_after_its_last_word(
    monkeypatch: pytest.MonkeyPatch, each: float
) -> None:
    """Those do not count in which the watch itself was frozen."""
    now = [1000.0]
    monkeypatch.setattr("common.base.control.time", SimpleNamespace(monotonic=lambda: now[0]))
    group = Group({}, Stop())
    group.mail = SimpleNamespace(get=lambda timeout: (2, {"alive": True}))  # type: ignore[assignment]
    group.missed = {1: 0, 2: 0}
    now[0] += 3600
    group.listen()
    assert not group.endings
    began = now[0]
    while not group.endings:
        now[0] += each
        group.listen()
    assert [*group.endings] == [1]
    assert LIMIT - 1 <= now[0] - began <= LIMIT * max(1, each) + each
