"""What every command does alike: it parses its flags, and ends with one line and a status.

It ends quietly where no one reads its standard output and standard error.
"""

import argparse
import errno
import io
import os
import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from common.base.errors import RunError, Terminated, printable, reason
from common.base.signals import interruptible


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line and exits with status 2."""

    def __init__(self, program: str, description: str | None, **more: Any) -> None:
        """The description keeps its lines, and no flag can be shortened."""
        super().__init__(program, description=description, allow_abbrev=False, **more)
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        self._negative_number_matcher = re.compile(r"-\.?\d")  # of a value as -7e9, too

    def error(self, message: str) -> NoReturn:
        line = f"{self.prog}: error: {message} (--help explains the flags)"
        self.exit(2, f"{printable(line, len(line))}\n")


def status(program: str, work: Callable[[], int | None]) -> int:
    """Does the work; the exit status, and one line on standard error if it failed."""
    open_streams()
    try:
        with interruptible():
            return work() or 0
    except Terminated as error:
        why, code = f"ended by {error}", 143
    except KeyboardInterrupt:
        why, code = "interrupted", 130
    except Exception as error:  # whatever a framework raises; a run's traceback is in its record
        why, code = reason(error), getattr(error, "status", 1)
    line = f"{program}: error: {why}"
    print(printable(line, len(line)), file=sys.stderr)  # a name in it may have any characters
    return code


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
