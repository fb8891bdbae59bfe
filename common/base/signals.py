"""Signals that end a command: in order at the first, at once at the second, never by a traceback.

Ctrl-C sends SIGINT, a terminal that is closed SIGHUP. Schedulers send SIGTERM, and some of them
SIGUSR1 or SIGUSR2 a while before it. A signal that is ignored, as by nohup, stays ignored.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

from common.base.errors import Terminated

AT_ONCE: Final = (signal.SIGINT, signal.SIGTERM)
"""The signals that end a process at once when they come again: a person or a scheduler insists."""

ENDING: Final = (*AT_ONCE, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""The signals that end a command. Shells and schedulers may repeat the last three."""


@dataclass
class Stop:
    """Whether a signal has asked a run to stop, and the exit status then: 130 after Ctrl-C."""

    asked: bool = False
    status: int = 143


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Meanwhile `handler` gets the signals of `ENDING` that are not ignored."""
    before = {number: signal.getsignal(number) for number in ENDING}
    for number, earlier in before.items():
        if earlier is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, earlier)


@contextmanager
def stoppable(*, patient: bool = False) -> Iterator[Stop]:
    """Meanwhile a signal is only noted; a second one ends the process, unless `patient`."""
    stop = Stop()

    def note(number: int, frame: FrameType | None) -> None:
        if not stop.asked:
            stop.asked, stop.status = True, 130 if number == signal.SIGINT else 143
        elif number in AT_ONCE and not patient:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    with _handled(note):
        yield stop


def interruptible() -> AbstractContextManager[None]:
    """Meanwhile a signal raises KeyboardInterrupt; a second one of `AT_ONCE` ends the process."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL if number in AT_ONCE else signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Terminated(signal.Signals(number).name)

    return _handled(interrupt)


@contextmanager
def held_back() -> Iterator[None]:
    """The signals come only afterwards; in what is started meanwhile, once it lets them through."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        let_through()


def let_through() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


def leave_to_parent() -> None:
    """In a process that a command has started: signals do nothing until its work notes them.

    A terminal sends its signals to all processes: the parent hears them and ends this one.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)
    let_through()
