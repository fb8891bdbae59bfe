"""The ways a command can fail, the exit status of each, and the line that says why.

That line may have text from elsewhere, which is made fit to be shown.
"""

import unicodedata
from typing import Final

MOST: Final = 2000
"""Characters of one text that are shown."""


class RequestError(Exception):
    """What was asked for cannot be done; the message says what to do instead. Exit status 2."""

    status = 2


class BusyError(RequestError):
    """Another run is at work where this one was asked to write."""


class RunError(Exception):
    """The run failed (exit status 1), if known in a `step`, from 1, a `tensor`, on a `device`."""

    status = 1

    def __init__(
        self,
        message: str = "",
        *,
        step: int | None = None,
        tensor: str = "",
        device: int | None = None,
    ) -> None:
        super().__init__(message)
        self.step, self.tensor, self.device = step, tensor, device


class UnforeseenError(RunError):
    """What a framework raised in another process, or how it crashed; the message is its own."""


class StoppedError(RunError):
    """A run was asked to stop, and did, in order. Exit status 130 after Ctrl-C, else 143."""

    def __init__(self, message: str = "", *, status: int = 143, step: int | None = None) -> None:
        super().__init__(message, step=step)
        self.status = status


class Terminated(KeyboardInterrupt):
    """The signal it names has come, and ends a command as Ctrl-C does. Exit status 143."""


def printable(text: str, most: int = MOST) -> str:
    """`text` with whatever is no character to look at written as its escape, and cut.

    Controls, marks of the direction of writing, and accents could change how the text
    around them looks. What is cut off is counted.
    """
    shown = "".join(
        x
        if x.isprintable() and not unicodedata.combining(x)
        else x.encode("unicode_escape", "surrogatepass").decode("ascii")
        for x in text[:most]
    )
    left = len(text) - most
    return shown if left <= 0 else f"{shown}… and {left:,} characters more"


def gist(text: str) -> str:
    """An error's first line, the last if the first announces it, or `what()` of C++."""
    lines = text.strip().splitlines() or ["no reason given"]
    said = [line.partition("what():")[2] for line in lines if line.strip().startswith("what():")]
    return [*said, lines[-1 if lines[0].endswith(":") else 0]][0].strip()


def reason(error: BaseException) -> str:
    """An error in a line: its message and, unless we have written that, its type."""
    if isinstance(error, RequestError | RunError):
        return str(error)
    return f"{type(error).__name__}: {gist(str(error))}"
