"""What a person sees of work that takes a while: on standard error, so that output can be piped."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import DownloadColumn, Progress, TextColumn, TransferSpeedColumn, track

Item = TypeVar("Item")


def tracked(work: Sequence[Item], description: str) -> Iterator[Item]:
    """The pieces of work, with a bar where there is a terminal."""
    console = Console(stderr=True)
    hidden = not sys.stderr.isatty()
    yield from track(work, description, console=console, transient=True, disable=hidden)


def counted(pieces: Iterable[bytes], description: str, *, shown: bool) -> Iterator[bytes]:
    """The pieces of what is received, with their bytes so far, where that is to be `shown`."""
    columns = TextColumn("{task.description}"), DownloadColumn(), TransferSpeedColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task(description, total=None)
        for piece in pieces:
            yield piece
            bar.update(task, advance=len(piece))
