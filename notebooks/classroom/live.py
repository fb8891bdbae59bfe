"""A live curve in the cell that trains; in a script, the lines of the command line."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from common.records.record import Epoch
from common.training.loop import Outcome
from common.training.reporter import Bar, Reporter, closing_line
from notebooks.drawing.curve import Curve
from notebooks.drawing.mime import mime_bundle


def notebook_display() -> Any:
    """IPython's display module in a notebook; None in a script."""
    shell = sys.modules.get("IPython")
    if shell is None or not hasattr(shell.get_ipython(), "kernel"):
        return None
    from IPython import display

    return display


def show(svg: str) -> None:
    """Shows a picture in a notebook."""
    if display := notebook_display():
        display.display(mime_bundle(svg), raw=True)


PROGRESS: Final = (
    '<div><progress value="{done}" max="{steps}" style="width: 12em"></progress> '
    "{description}, step {done} of {steps}, {speed:,.0f} images/s</div>"
)


class Lines(Reporter):
    """Writes notices and a line for each epoch by a function, unless `quiet`."""

    def __init__(self, write: Callable[[str], object], *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self.write = write

    def notice(self, text: str) -> None:
        """Writes a line."""
        if not self.quiet:
            self.write(text)


class Live(Lines):
    """The curve of one run, and the bar below it, in the cell that trains."""

    def __init__(self, epochs: int, *, quiet: bool) -> None:
        super().__init__(partial(print, flush=True), quiet=quiet)
        self.curve = Curve(epochs)
        self.display: Any = None if quiet else notebook_display()
        self.output: Any = None

    @contextmanager
    def bar(self, description: str, steps: int, batch_size: int, done: int = 0) -> Iterator[Bar]:
        """Shows the curve now and then, with a bar over an epoch's steps."""

        def show(done: int, loss: float, speed: float) -> None:
            self.curve.loss(done / steps, loss)
            bar = PROGRESS.format(description=description, done=done, steps=steps, speed=speed)
            self._draw({"text/html": f"{self.curve.svg()}{bar}"})

        yield Bar(show if self.display else None, batch_size)

    def epoch(self, epoch: Epoch, loss: float, epochs: int) -> None:
        """An epoch is done; `loss` is its mean."""
        self.curve.accuracies.append(epoch.test_accuracy)
        if self.display:
            self._draw(mime_bundle(self.curve.svg()))
        else:
            super().epoch(epoch, loss, epochs)

    def finish(self, outcome: Outcome, devices: Sequence[str]) -> None:
        """The run is over: the curve of every step's loss stays as a picture."""
        self.curve.accuracies = [epoch.test_accuracy for epoch in outcome.epochs]
        self.curve.finish(outcome.losses)
        if self.display:
            self._draw(mime_bundle(self.curve.svg()))
        self.notice(closing_line(outcome.epochs, devices))

    def _draw(self, bundle: dict[str, str]) -> None:
        if self.output is None:
            self.output = self.display.display(bundle, raw=True, display_id=True)
        else:
            self.output.update(bundle, raw=True)
