"""A curve in the cell that trains, drawn anew after each epoch."""

import sys
from typing import Any
from uuid import uuid4

from common.settings.config import Config
from common.training.loop import Outcome
from common.training.reporter import Reporter
from notebooks.drawing.pictures import mime_bundle
from notebooks.drawing.plots import curves


def show(svg: str, **how: Any) -> None:
    """Shows a picture in a notebook; `how` is for IPython's `display`."""
    if "ipykernel" in sys.modules:  # not in a script
        from IPython import display

        display.display(mime_bundle(svg), raw=True, **how)


class Live(Reporter):
    """The curve of one run, and its notices, in the cell that trains."""

    def __init__(self, config: Config, outcome: Outcome, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self.config, self.outcome = config, outcome
        self.place, self.drawn = uuid4().hex, False

    def notice(self, text: str) -> None:
        """Prints a line, unless quiet."""
        if not self.quiet:
            print(text, flush=True)

    def epoch(self, *_: object) -> None:
        """An epoch is done."""
        self.draw(self.outcome)

    def draw(self, outcome: Outcome) -> None:
        """Draws the run so far, in the place of the picture before."""
        if not self.quiet:
            title = f"{self.config.framework}, devices: {self.config.devices}"
            accuracies = [epoch.test_accuracy for epoch in outcome.epochs]
            svg = curves(title, outcome.losses, accuracies)
            show(svg, display_id=self.place, update=self.drawn)
            self.drawn = True
