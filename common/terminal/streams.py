"""Standard output and standard error of a command: it ends quietly where a reader has left."""

import errno
import io
import os
import sys
from typing import Any

from common.base.errors import RunError


class Unread(io.FileIO):
    """A file that is written to; what a pipe without a reader does not take is dropped.

    Any other trouble is raised once, as RunError: the interpreter tries again at its end.
    """

    failed = False

    def write(self, data: Any) -> int:
        """Writes bytes, or as many of them as the file takes at once."""
        try:
            return os.write(self.fileno(), data)
        except OSError as error:
            if not self.failed and error.errno != errno.EPIPE:
                self.failed = True
                raise RunError(f"what is printed cannot be written: {error.strerror}") from None
            return len(data)


def open_streams() -> None:
    """Lets this process continue where the reader of a pipe has left, such as `head`."""
    for descriptor, name in enumerate(("stdout", "stderr"), start=1):
        stream = getattr(sys, name)
        if stream is not None and stream is getattr(sys, f"__{name}__"):  # not a test's own
            opened = io.TextIOWrapper(
                io.BufferedWriter(Unread(descriptor, "w", closefd=False)),
                encoding=stream.encoding,
                errors="backslashreplace",  # a character that it does not have ends nothing, either
                line_buffering=True,
            )
            setattr(sys, name, opened)
