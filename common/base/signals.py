"""Ctrl-C and SIGTERM: one ends a command in order, a second one at once, none by a traceback."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from common.base.errors import Terminated

ENDING: Final = {signal.SIGINT, signal.SIGTERM}
"""The signals that end a command."""


@contextmanager
def interruptible(number: signal.Signals) -> Iterator[None]:
    """Meanwhile a signal that is not ignored raises KeyboardInterrupt; a second one ends it all."""
    before = signal.getsignal(number)
    if before is not signal.SIG_IGN:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        if signal.getsignal(number) is _interrupt:  # it has not come
            signal.signal(number, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


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
    """Both signals come only afterwards; in what is forked meanwhile, once it lets them through."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        let_through()


def let_through() -> None:
    """Both signals come again."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
