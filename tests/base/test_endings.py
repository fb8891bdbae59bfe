"""How a process ended arrives elsewhere as it was, and the first of several signals counts."""

import faulthandler
import json
import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Pipe

import pytest

from common.base.children import start
from common.base.endings import (
    KILLED,
    REST,
    SAID,
    Ending,
    cause,
    from_plain,
    killed,
    tell_ending,
    to_plain,
    without_word,
)
from common.base.errors import RequestError, RunError, StoppedError, UnforeseenError
from common.base.signals import Stop

ENDINGS = [
    Ending(SAID, RunError("no number ü\ud800", step=3, tensor="fc1.bias", device=2), "a line\n"),
    Ending(SAID, RequestError("ask otherwise"), ""),
    Ending(REST, UnforeseenError("a process failed: OSError"), ""),
    Ending(SAID, StoppedError("stopped", status=130, step=4), ""),
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_ending_arrives_as_it_was(ending: Ending) -> None:
    found = from_plain(json.loads(json.dumps(to_plain(ending))), "process 1: ")
    assert (found.order, found.details) == (ending.order, ending.details)
    assert type(found.error) is type(ending.error)
    assert str(found.error) == f"process 1: {ending.error}"
    assert vars(found.error) == vars(ending.error)


def killing(number: int) -> None:
    faulthandler.disable()  # pytest's would print where every thread stands
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("work", "order", "message", "kind"),
    [
        (lambda: 1 / 0, REST, "a process failed: ZeroDivisionError: division by", UnforeseenError),
        (lambda: killing(signal.SIGKILL), KILLED, "the process was ended by SIGKILL", RunError),
        (lambda: os._exit(3), KILLED, "the process was ended with status 3", RunError),
        (lambda: killing(signal.SIGSEGV), KILLED, "the process was ended by SIG", UnforeseenError),
        (lambda: 3, None, "", RunError),
    ],
)
@pytest.mark.skipif(sys.platform == "darwin", reason="no lambda can be sent to a new process")
def test_how_a_process_ends_is_known(
    work: Callable[[], object], order: int | None, message: str, kind: type[RunError]
) -> None:
    outcome, tell = Pipe(duplex=False)
    process = start(tell_ending, work, tell)
    tell.close()
    try:
        ending: Ending | None = outcome.recv()
    except EOFError:
        ending = without_word("the process", process)
    assert (ending and ending.order) == order
    if ending:
        assert str(ending.error).startswith(message)
        assert type(ending.error) is kind


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
