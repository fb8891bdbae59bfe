"""What a run reports on standard error, and its closing line."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import SupportsFloat

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from common.base.errors import printable
from common.records.record import Epoch
from common.settings.config import Config


class Reporter:
    """Prints notices, a line for each epoch and, on a terminal, a progress bar."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.console = Console(stderr=True, quiet=quiet, highlight=False)

    def notice(self, text: str) -> None:
        self.console.print(printable(text, len(text)), markup=False, soft_wrap=True)

    @contextmanager
    def bar(self, epoch: str, steps: int, done: int) -> Iterator[Callable[[SupportsFloat], None]]:
        """A bar over an epoch's steps, some of them done; each calls it with its queued loss."""
        columns = *Progress.get_default_columns(), MofNCompleteColumn()
        visible = sys.stderr.isatty() and not self.quiet
        bars = Progress(*columns, console=self.console, transient=True, disable=not visible)
        with bars:
            task, read = bars.add_task(epoch, total=steps, completed=done), time.monotonic()

            def advance(loss: SupportsFloat) -> None:
                nonlocal read
                bars.advance(task)
                if visible and time.monotonic() > read + 0.5:  # to read it waits for the device
                    bars.update(task, description=f"{epoch}, loss {float(loss):.3f}")
                    read = time.monotonic()

            yield advance

    def epoch(self, epoch: Epoch, loss: float, epochs: int) -> None:
        """The line of a finished epoch; `loss` is its mean."""
        self.notice(
            f"epoch {epoch.epoch}/{epochs}: loss {loss:.3f}, test acc {epoch.test_accuracy:.3f}, "
            f"{epoch.seconds:.1f} s, {epoch.images_per_second:,.0f} images/s"
        )


def introduction(config: Config, preset: str, devices: Sequence[str]) -> str:
    """A line about the run at its start; `preset` is the flag's."""
    length = f"{config.epochs} epochs" if config.steps is None else f"{config.steps} steps"
    why = "without a GPU the book's own, --preset book, takes hours"
    if config.preset == "book":
        why = "the book's own setting; --preset quick is shorter"
    data = config.dataset if config.dataset == "sums" else f"{config.dataset} images"
    parts = [
        config.options.describe(),
        f"{length} of {config.train_examples:,} {data}",
        f"batch {config.batch_size}, {config.rates()}, {config.dtype}, on [{', '.join(devices)}]",
    ]
    auto = f" (auto: {why})" if preset == "auto" else ""
    what = f"{config.framework} {config.chapter}, preset {config.preset}{auto}"
    return f"{what}: {', '.join(filter(None, parts))}"


def closing_line(
    epochs: Sequence[Epoch], devices: Sequence[str], timed: Sequence[Epoch] | None = None
) -> str:
    """The last accuracy, and the mean seconds of the epochs that are `timed`, by default all."""
    seconds = [epoch.seconds for epoch in (epochs if timed is None else timed)]
    speed = f", {fmean(seconds):.1f} sec/epoch" if seconds else ""
    return f"test acc: {epochs[-1].test_accuracy:.2f}{speed} on [{', '.join(devices)}]"
