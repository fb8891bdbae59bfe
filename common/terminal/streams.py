"""Standard output and standard error of a command: no work ends because they take nothing."""

import errno
import io
import os
import sys
from typing import Any, TextIO

from common.base.errors import RunError


class Lenient(io.FileIO):
    """A file that is written to; what it does not take is dropped, and `trouble` says why."""

    trouble: OSError | None = None

    def write(self, data: Any) -> int:
        """Writes bytes, or as many of them as the file takes at once."""
        try:
            return os.write(self.fileno(), data)
        except OSError as error:
            self.trouble = self.trouble or error
            return len(data)


def open_streams() -> None:
    """Makes this process's standard streams such that no work ends because of them.

    The disk may be full, the reader of a pipe may have left, a stream may be closed from the start.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # else the next file that is opened would take its place
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # A test, or whoever else has put a stream of its own there, keeps it.
    if sys.stdout is sys.__stdout__:
        sys.stdout = _lenient(sys.stdout, 1)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _lenient(sys.stderr, 2)


def require_printed() -> None:
    """Raises RunError if standard output has not taken everything, but for a pipe without reader.

    Whoever has closed that one wants to read no more.
    """
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    trouble = raw.trouble if isinstance(raw, Lenient) else None
    if trouble is not None and trouble.errno != errno.EPIPE:
        raise RunError(f"standard output cannot be written: {trouble.strerror}; all else is done")


def _lenient(stream: TextIO | None, descriptor: int) -> TextIO:
    """What prints to a descriptor as `stream` does, which is None if that was closed."""
    return io.TextIOWrapper(
        io.BufferedWriter(Lenient(descriptor, "w", closefd=False)),
        encoding=stream.encoding if stream else "utf-8",
        errors="backslashreplace",  # a character that it does not have is no reason to stop, either
        line_buffering=True,
    )
