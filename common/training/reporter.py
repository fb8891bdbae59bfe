"""What a person sees while a run goes on: on standard error, so that output can be piped."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import SupportsFloat

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from common.records.record import Epoch
from common.terminal.text import printable

REDRAW = 0.5
"""Seconds between two looks at the loss: each one waits for the device."""


class Reporter:
    """Notices, a bar for each epoch where there is a terminal, and a line for each epoch."""

    def __init__(self, *, quiet: bool) -> None:
        """Says nothing at all if `quiet`."""
        self.quiet = quiet
        self.console = Console(stderr=True, quiet=quiet, highlight=False)

    def notice(self, text: str) -> None:
        """Prints one line."""
        self.console.print(printable(text, len(text)), markup=False, soft_wrap=True)

    @contextmanager
    def bar(self, description: str, steps: int, batch_size: int, done: int = 0) -> Iterator["Bar"]:
        """A bar over one epoch's steps, of which some are done; it vanishes at the end."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
        )
        visible = sys.stderr.isatty() and not self.quiet
        with Progress(
            *columns, console=self.console, transient=True, disable=not visible
        ) as progress:
            yield Bar(progress, description, steps, batch_size, visible, done)

    def epoch(self, epoch: Epoch, loss: float, epochs: int) -> None:
        """The line of a finished epoch; `loss` is its mean."""
        self.notice(
            f"epoch {epoch.epoch}/{epochs}: loss {loss:.3f}, test acc {epoch.test_accuracy:.3f}, "
            f"{epoch.seconds:.1f} s, {epoch.images_per_second:,.0f} images/s"
        )


class Bar:
    """The bar of one epoch."""

    def __init__(
        self,
        progress: Progress,
        description: str,
        steps: int,
        batch_size: int,
        visible: bool,
        done: int = 0,
    ) -> None:
        """Starts the clock."""
        self.progress, self.batch_size, self.visible = progress, batch_size, visible
        self.task = progress.add_task(description, total=steps, completed=done, figures="")
        self.started = self.drawn = time.monotonic()
        self.done = self.before = done

    def step(self, loss: SupportsFloat) -> None:
        """One more step is queued; its loss is read only now and then, as that waits for it."""
        self.done += 1
        now = time.monotonic()
        if not self.visible or now - self.drawn < REDRAW:
            return
        speed = (self.done - self.before) * self.batch_size / (now - self.started)
        figures = f"loss {float(loss):.3f}, {speed:,.0f} images/s"
        self.progress.update(self.task, completed=self.done, figures=figures)
        self.drawn = now
