"""A live curve in the cell that trains; in a script, the lines of the command line."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from common.records.record import Epoch
from common.training.reporter import Bar, Reporter
from notebooks.drawing.curve import Curve
from notebooks.drawing.mime import mime_bundle

Notify = Callable[..., None]
"""Takes the name of an event of training, and its arguments."""


def notebook_display() -> Any:
    """IPython's display module in a notebook; None in a script."""
    shell = sys.modules.get("IPython")
    running = shell and shell.get_ipython()
    if running is None or not hasattr(running, "kernel"):
        return None
    from IPython import display

    return display


def show(svg: str) -> None:
    """Shows a picture in a notebook."""
    if display := notebook_display():
        display.display(mime_bundle(svg), raw=True)


class Forwarder(Reporter):
    """A reporter that forwards events to a `Live` curve, which may be in another process."""

    def __init__(self, notify: Notify) -> None:
        super().__init__(quiet=True)
        self.notify = notify

    @contextmanager
    def bar(self, description: str, steps: int, batch_size: int, done: int = 0) -> Iterator[Bar]:
        """Forwards the progress of an epoch now and then, from its first step."""

        def show(done: int, loss: float, speed: float) -> None:
            self.notify("step", description, done, steps, loss, speed)

        yield Bar(show, batch_size)

    def epoch(self, epoch: Epoch, loss: float, epochs: int) -> None:
        """Forwards the end of an epoch."""
        self.notify("epoch", epoch, loss, epochs)


PROGRESS: Final = (
    '<div><progress value="{done}" max="{steps}" style="width: 12em"></progress> '
    "{description}, step {done} of {steps}, {speed:,.0f} images/s</div>"
)


class Live:
    """The curve of one run, and the bar below it, in the cell that trains."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet, self.curve = quiet, Curve()
        self.display = notebook_display()
        self.output: Any = None
        self.fallback = Reporter(quiet=False)

    def receive(self, name: str, *arguments: Any) -> None:
        """Calls the method of the event's name, unless `quiet`."""
        if not self.quiet:
            getattr(self, name)(*arguments)

    def notice(self, text: str) -> None:
        """Prints a line."""
        print(text, flush=True)

    def begin(self, epochs: int) -> None:
        """The run begins."""
        self.curve.epochs = epochs

    def step(self, description: str, done: int, steps: int, loss: float, speed: float) -> None:
        """`done` steps of an epoch are over; `loss` is the last one's."""
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
        if self.display and self.output is not None:
            self.output.update(mime_bundle(self.curve.svg()), raw=True)
        self.notice(closing)

    def _draw(self, html: str) -> None:
        if self.output is None:
            self.output = self.display.display(self.display.HTML(html), display_id=True)
        else:
            self.output.update(self.display.HTML(html))
