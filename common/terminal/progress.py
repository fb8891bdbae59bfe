"""What a person sees of work that takes a while: on standard error, so that output can be piped."""

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


def tracked(work: Sequence[Item], description: str) -> Iterator[Item]:
    """The pieces of work, with a bar where there is a terminal."""
    console = Console(stderr=True)
    hidden = not sys.stderr.isatty()
    yield from track(work, description, console=console, transient=True, disable=hidden)
