"""What every command does alike: it parses its flags, and ends with one line and a status.

Flags take numbers up to a bound each. Where no one reads what it prints, a command ends quietly.
Only the standard library, so that `--help` is instant.
"""

import argparse
import errno
import io
import math
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from common.base.errors import RunError, Terminated, printable, reason
from common.base.signals import interruptible

Conversion = Callable[[str], float]

COUNT: Final = 2**31 - 1
LARGEST_SEED: Final = 2**32 - 1
"""NumPy takes no larger one, and frameworks keep counts and sizes in 32 bits."""

DEVICES: Final = 64
DEPTH: Final = 60
"""More than a machine has GPUs, and a layer for each. So many simulated devices train in all
frameworks, on two cores within two minutes; on more, JAX and TensorFlow compile for long."""

THREADS: Final = 1024
MICROBATCHES: Final = 1024
REPEATS: Final = 1000
WIDTH: Final = 1024
STEPS: Final = 10_000_000
"""More than is of use. ResNet-18 of that width has 11 GB of weights, and the losses of so many
steps take 320 MB of memory."""


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


def _number(kind: Callable[[str], float], good: Callable[[float], bool], wanted: str) -> Conversion:
    def convert(text: str) -> float:
        with suppress(ValueError):
            if good(value := kind(text)):
                return value
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")

    return convert


def count(most: int = COUNT, least: int = 1) -> Conversion:
    """Reads how many there are of something: from `least` to `most`."""
    wanted = f"a whole number of at least {least} and at most {most}"
    return _number(int, lambda n: least <= n <= most, wanted)


def path(text: str) -> Path:
    """Reads a path; `~` is the user's home, which a shell leaves in `--out=~/runs`."""
    with suppress(RuntimeError):  # no such user: a folder may be called so
        return Path(text).expanduser()
    return Path(text)


def counts(text: str) -> tuple[int, ...]:
    """Reads several such numbers, with commas between them."""
    read = count(DEVICES)
    return tuple(int(read(number)) for number in text.split(","))


seed = _number(int, lambda n: 0 <= n <= LARGEST_SEED, f"a whole number from 0 to {LARGEST_SEED}")

distance = _number(float, lambda x: 0 <= x <= 1, "a number of at least 0 and at most 1")

at_least_0 = _number(float, lambda x: 0 <= x <= 1e9, "a number of at least 0, at most 1e9")

share = _number(float, lambda x: 1e-3 <= x <= 1, "a number of at least 0.001 and at most 1")

above_zero = _number(float, lambda x: math.isfinite(x) and x > 0, "a number above 0")

# What is computed of such numbers is finite.
quantity = _number(float, lambda x: 1e-30 <= x <= 1e30, "a number between 1e-30 and 1e30, as 7e9")
