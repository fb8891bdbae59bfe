"""Standard output and standard error of a command: it ends quietly where no one reads them."""

import errno
import io
import os
import sys
from typing import Any

from common.base.errors import RunError


class Unread(io.FileIO):
    """A file that is written to; drops what a pipe without a reader or a closed terminal refuses.

    Any other trouble is raised once, as RunError: the interpreter tries again at its end.
    """

    failed = False

    def write(self, data: Any) -> int:
        try:
            return os.write(self.fileno(), data)
        except OSError as error:
            if not self.failed and error.errno not in (errno.EPIPE, errno.EIO):
                self.failed = True
                raise RunError(f"what is printed cannot be written: {error.strerror}") from None
            return len(data)


def open_streams() -> None:
    """Lets this process continue without a reader, and without its streams."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # else a file would get its number, and what a library prints
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for descriptor, name in enumerate(("stdout", "stderr"), start=1):
        stream = getattr(sys, name)  # None if it was closed
        if stream is getattr(sys, f"__{name}__"):  # not a test's own
            opened = io.TextIOWrapper(
                io.BufferedWriter(Unread(descriptor, "w", closefd=False)),
                encoding=getattr(stream, "encoding", "utf-8"),
                errors="backslashreplace",  # a character that it does not have ends nothing, either
                line_buffering=True,
            )
            setattr(sys, name, opened)
