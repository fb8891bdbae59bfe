"""How a process ended arrives elsewhere as it was, and the first of several signals counts."""

import faulthandler
import json
import os
import signal
import sys
import time
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
    ending_of,
    from_plain,
    killed,
    tell_ending,
    to_plain,
    without_word,
)
from common.base.errors import RequestError, RunError, StoppedError, UnforeseenError
from common.base.signals import Stop

ENDINGS = [
    Ending(SAID, RunError("no number", step=3, tensor="fc1.bias", device=2), "a traceback\n"),
    Ending(SAID, RequestError("ask otherwise"), ""),
    Ending(REST, UnforeseenError("a process failed: OSError"), ""),
    Ending(SAID, StoppedError("stopped", status=130, step=4), ""),
    Ending(REST, RunError("a process failed: OSError: ü\x00\ud800"), "..."),
    killed("was ended by SIGKILL"),
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_ending_arrives_as_it_was(ending: Ending) -> None:
    found = from_plain(json.loads(json.dumps(to_plain(ending))), "process 1: ")
    assert (found.order, found.details) == (ending.order, ending.details)
    assert type(found.error) is type(ending.error)
    assert str(found.error) == f"process 1: {ending.error}"
    assert found.error.status == ending.error.status
    assert vars(found.error) == vars(ending.error)


@pytest.mark.parametrize(
    ("error", "order", "message"),
    [
        (RunError("said"), SAID, "said"),
        (RequestError("asked"), SAID, "asked"),
        (MemoryError(), REST, "a process failed: MemoryError"),
        (ValueError("a\nb"), REST, "a process failed: ValueError: a"),
    ],
)
def test_what_work_raises_is_how_it_ends(error: Exception, order: int, message: str) -> None:
    def work() -> None:
        raise error

    ending = ending_of(work)
    assert ending
    assert (ending.order, str(ending.error)) == (order, message)
    assert "raise error" in ending.details
    assert ending_of(lambda: 3) is None


def ended(work: Callable[[], object]) -> Ending | None:
    """How a process ends that does this, as the process that has started it learns."""
    if sys.platform == "darwin":
        pytest.skip("on macOS a new process is started, to which no lambda can be sent")
    outcome, tell = Pipe(duplex=False)
    process = start(tell_ending, work, tell)
    tell.close()
    try:
        found: Ending | None = outcome.recv()
    except EOFError:
        found = without_word("the process", process)
    process.join()
    return found


@pytest.mark.parametrize(
    ("work", "message", "crashed"),
    [
        (lambda: killing(signal.SIGKILL), "was ended by SIGKILL", False),
        (lambda: os._exit(3), "was ended with status 3", False),
        (lambda: sys.exit(0), "was ended with status 0", False),
        (lambda: killing(signal.SIGSEGV), "was ended by SIGSEGV", True),
    ],
)
def test_one_that_says_nothing_is_known_by_its_status_and_a_crash_is_told_from_other_ends(
    work: Callable[[], object], message: str, crashed: bool
) -> None:
    ending = ended(work)
    assert ending
    assert (ending.order, str(ending.error)) == (KILLED, f"the process {message}")
    assert isinstance(ending.error, UnforeseenError) == crashed


def killing(number: int) -> None:
    faulthandler.disable()  # pytest's would print where every thread stands
    os.kill(os.getpid(), number)


def test_work_that_is_done_ends_well() -> None:
    assert ended(lambda: time.sleep(0.1)) is None


def test_processes_that_were_asked_to_stop_did_so_by_the_signal_that_came() -> None:
    stop = Stop()
    said = Ending(SAID, RunError("a cause"), "")
    assert cause(said, stop) is said.error
    stop.number = signal.SIGINT
    assert cause(said, stop) is said.error
    found = cause(Ending(SAID, StoppedError("stopped", status=143, step=3), ""), stop)
    assert isinstance(found, StoppedError)
    assert (found.status, found.step) == (130, 3)
    found = cause(killed("was ended by SIGKILL"), stop)
    assert isinstance(found, StoppedError)
    assert found.status == 130
