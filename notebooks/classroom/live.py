"""A curve that grows while a cell trains; in a script, the lines that the command line prints."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from common.records.record import Epoch
from common.training.reporter import Bar, Reporter
from notebooks.drawing.curve import Curve
from notebooks.drawing.shown import shown

Tells = Callable[..., None]
"""Takes the name of something that happens, and what belongs to it."""


def notebook_display() -> Any:
    """IPython's module of pictures, in a notebook; None elsewhere, as in a script."""
    shell = sys.modules.get("IPython")
    running = shell and shell.get_ipython()
    if running is None or not hasattr(running, "kernel"):
        return None
    from IPython import display

    return display


def show(svg: str) -> None:
    """Shows a picture in a notebook."""
    if display := notebook_display():
        display.display(shown(svg), raw=True)


class Teller(Reporter):
    """A reporter that only tells what happens: another one shows it, maybe in another process."""

    def __init__(self, tell: Tells) -> None:
        """Tells to `tell`."""
        super().__init__(quiet=True)
        self.tell = tell

    @contextmanager
    def bar(self, description: str, steps: int, batch_size: int, done: int = 0) -> Iterator[Bar]:
        """Tells of one epoch's steps, now and then; notebooks begin with the first."""

        def show(done: int, loss: float, speed: float) -> None:
            self.tell("step", description, done, steps, loss, speed)

        yield Bar(show, batch_size)

    def epoch(self, epoch: Epoch, loss: float, epochs: int) -> None:
        """Tells of a finished epoch."""
        self.tell("epoch", epoch, loss, epochs)


PROGRESS: Final = (
    '<div><progress value="{done}" max="{steps}" style="width: 12em"></progress> '
    "{description}, step {done} of {steps}, {speed:,.0f} images/s</div>"
)


class Live:
    """The curve of one run, and the bar below it, in the cell that trains."""

    def __init__(self, *, quiet: bool = False) -> None:
        """Shows nothing yet, and nothing at all if `quiet`."""
        self.quiet, self.curve = quiet, Curve()
        self.display = notebook_display()
        self.shown: Any = None
        self.fallback = Reporter(quiet=False)

    def hear(self, name: str, *arguments: Any) -> None:
        """Shows what happens."""
        if not self.quiet:
            getattr(self, name)(*arguments)

    def notice(self, text: str) -> None:
        """Prints a line."""
        print(text, flush=True)

    def begin(self, epochs: int) -> None:
        """The run begins."""
        self.curve.epochs = epochs

    def step(self, description: str, done: int, steps: int, loss: float, speed: float) -> None:
        """So many steps of an epoch are done; the last one's loss is this."""
        self.curve.loss(done / steps, loss)
        if self.display:
            bar = PROGRESS.format(description=description, done=done, steps=steps, speed=speed)
            self._draw(f"{self.curve.svg()}{bar}")

    def epoch(self, epoch: Epoch, loss: float, epochs: int) -> None:
        """An epoch is done; `loss` is its mean."""
        self.curve.epoch(loss, epoch.test_accuracy)
        if self.display:
            self._draw(self.curve.svg())
        else:
            self.fallback.epoch(epoch, loss, epochs)

    def finish(self, closing: str, losses: Sequence[float]) -> None:
        """The run is over: the curve of every step's loss stays as a picture."""
        self.curve.finish(losses)
        if self.display and self.shown is not None:
            self.shown.update(shown(self.curve.svg()), raw=True)
        self.notice(closing)

    def _draw(self, html: str) -> None:
        """Puts this in place of what is shown."""
        if self.shown is None:
            self.shown = self.display.display(self.display.HTML(html), display_id=True)
        else:
            self.shown.update(self.display.HTML(html))
