"""Memory that a process gives back and gets anew costs more time than what is done with it."""

import ctypes
import sys
from typing import Final

OPTIONS: Final = {-4: 0, -1: 2**31 - 1, -8: 1}
"""Of glibc's mallopt: no block mapped by itself, no memory returned, one heap for all threads."""


def keep_memory() -> None:
    """Lets this process keep what it frees, where the C library is glibc.

    Otherwise large vectors get new pages at each message, and the operating system clears them: the
    clock would show that, and not the same twice.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        for option, value in OPTIONS.items():
            libc.mallopt(option, value)
