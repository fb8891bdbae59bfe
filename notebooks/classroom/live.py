"""A curve in the cell that trains, drawn anew after each epoch; in a script, lines of text."""

import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy

from common.records.record import Epoch
from common.settings.config import Config
from common.training.loop import Outcome
from common.training.reporter import Reporter, closing_line
from notebooks.drawing.pictures import mime_bundle
from notebooks.drawing.plots import Curve, plot

MEANS: Final = 60
"""Points of a whole run's losses: those of single steps are noisy."""

HIGHEST: Final = 5.0
"""The largest loss that is drawn: one that diverges runs along the upper edge."""


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


def curve(config: Config, losses: Sequence[float], accuracies: Sequence[float]) -> str:
    """The means of losses over equal parts of the epochs so far, and the accuracy after each."""
    epochs = numpy.arange(len(accuracies)) + 1
    parts = numpy.array_split(losses, min(MEANS, len(losses)))
    means = numpy.array([part.mean() for part in parts])
    middles = (numpy.arange(len(parts)) + 0.5) / len(parts) * len(epochs)
    loss = Curve("epoch", "training loss", middles, numpy.minimum(means, HIGHEST))
    accuracy = Curve("epoch", "accuracy", epochs, numpy.array(accuracies))
    return plot(f"{config.framework}, devices: {config.devices}", [loss, accuracy])


class Live(Reporter):
    """The curve of one run, and its notices, in the cell that trains."""

    def __init__(self, config: Config, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self.config = config
        self.display: Any = None if quiet else notebook_display()
        self.output: Any = None
        self.losses: list[float] = []
        self.accuracies: list[float] = []

    def notice(self, text: str) -> None:
        """Prints a line, unless quiet."""
        if not self.quiet:
            print(text, flush=True)

    def epoch(self, epoch: Epoch, loss: float, epochs: int) -> None:
        """An epoch is done; `loss` is its mean."""
        self.losses.append(loss)
        self.accuracies.append(epoch.test_accuracy)
        if self.display:
            self._draw(self.losses, self.accuracies)
        else:
            super().epoch(epoch, loss, epochs)

    def finish(self, outcome: Outcome, devices: Sequence[str]) -> None:
        """The run is over: the curve of every step's loss stays as a picture."""
        if self.display:
            self._draw(outcome.losses, [epoch.test_accuracy for epoch in outcome.epochs])
        self.notice(closing_line(outcome.epochs, devices))

    def _draw(self, losses: Sequence[float], accuracies: Sequence[float]) -> None:
        bundle = mime_bundle(curve(self.config, losses, accuracies))
        if self.output is None:
            self.output = self.display.display(bundle, raw=True, display_id=True)
        else:
            self.output.update(bundle, raw=True)
