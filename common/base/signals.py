"""Signals that end a command: in order at the first, at once at the second, never by a traceback.

Ctrl-C sends SIGINT. Schedulers send SIGTERM, and some of them SIGUSR1 a while before it.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from common.base.errors import Terminated

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
"""The signals that end a command."""


class Stop:
    """Whether a signal has asked a run to stop, and which one it was."""

    def __init__(self) -> None:
        """No signal has come yet."""
        self.number: int | None = None

    @property
    def asked(self) -> bool:
        """Whether one has come."""
        return self.number is not None

    @property
    def status(self) -> int:
        """The exit status of what is ended by it: 130 after Ctrl-C, else 143."""
        return 130 if self.number == signal.SIGINT else 143


@contextmanager
def stoppable(
    then: Callable[[int], object] | None = None, *, patient: bool = False
) -> Iterator[Stop]:
    """Meanwhile a signal is only noted, and told to `then`; a second one ends the process at once.

    Not so if `patient`: the process that has started this one ends it then. SIGUSR1 never ends it
    at once: schedulers may send it to a process more than once.
    """
    stop = Stop()

    def note(number: int, frame: FrameType | None) -> None:
        if not stop.asked:
            stop.number = number
            if then is not None:
                then(number)
        elif number != signal.SIGUSR1 and not patient:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    before = {number: signal.getsignal(number) for number in ENDING}
    for number in ENDING:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interruptible(*numbers: signal.Signals) -> Iterator[None]:
    """Meanwhile a signal that is not ignored raises KeyboardInterrupt; a second one ends it all."""
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in numbers:
            if signal.getsignal(number) is _interrupt:  # it has not come
                signal.signal(number, before[number])


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated(signal.Signals(number).name)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """What is started meanwhile ignores Ctrl-C, from its first moment on."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def held_back() -> Iterator[None]:
    """The signals come only afterwards; in what is forked meanwhile, once it lets them through."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        let_through()


def let_through() -> None:
    """The signals come again."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
