"""Text from elsewhere, made fit to be shown: on a page, on a terminal."""

import unicodedata
from collections.abc import Sequence
from typing import Final

from common.base.errors import RequestError, RunError

MOST: Final = 2000
"""Characters of one text that are shown."""


def printable(text: str, most: int = MOST) -> str:
    """`text` with whatever is no character to look at written as its escape, and cut.

    Controls, marks of the direction of writing, and accents could change how the text
    around them looks. What is cut off is counted.
    """
    shown = "".join(map(_visible, text[:most]))
    left = len(text) - most
    return shown if left <= 0 else f"{shown}… and {left:,} characters more"


def _visible(character: str) -> str:
    if character.isprintable() and not unicodedata.combining(character):
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


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


def listed(items: Sequence[object]) -> str:
    """Items in a sentence: 0, 1 and 2."""
    texts = list(map(str, items))
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
