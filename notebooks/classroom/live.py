"""A curve in the cell that trains, drawn anew after each epoch; in a script, lines of text."""

import sys
from collections.abc import Sequence
from typing import Any

from common.records.record import Epoch
from common.training.loop import Outcome
from common.training.reporter import Reporter, closing_line
from notebooks.drawing.curve import curve, means
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


class Live(Reporter):
    """The curve of one run, and its notices, in the cell that trains."""

    def __init__(self, epochs: int, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self.epochs, self.output = epochs, None
        self.display: Any = None if quiet else notebook_display()
        self.losses: list[tuple[float, float]] = []
        self.accuracies: list[float] = []

    def notice(self, text: str) -> None:
        """Prints a line, unless quiet."""
        if not self.quiet:
            print(text, flush=True)

    def epoch(self, epoch: Epoch, loss: float, epochs: int) -> None:
        """An epoch is done; `loss` is its mean."""
        self.losses.append((epoch.epoch, loss))
        self.accuracies.append(epoch.test_accuracy)
        if self.display:
            self._draw()
        else:
            super().epoch(epoch, loss, epochs)

    def finish(self, outcome: Outcome, devices: Sequence[str]) -> None:
        """The run is over: the curve of every step's loss stays as a picture."""
        self.losses = means(outcome.losses, self.epochs)
        self.accuracies = [epoch.test_accuracy for epoch in outcome.epochs]
        if self.display:
            self._draw()
        self.notice(closing_line(outcome.epochs, devices))

    def _draw(self) -> None:
        bundle = mime_bundle(curve(self.epochs, self.losses, self.accuracies))
        if self.output is None:
            self.output = self.display.display(bundle, raw=True, display_id=True)
        else:
            self.output.update(bundle, raw=True)
