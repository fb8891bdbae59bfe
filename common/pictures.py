"""The pictures of the report: losses of a suite, their distance from the answer, accuracies."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np

from common.checks import Run
from common.interface import Array
from common.suites import FRAMEWORKS

DASHES: Final = ("-", "--", ":", "-.")
"""Line styles, by the number of devices: colour is never all that tells runs apart."""

TINY: Final = 1e-17
"""What is drawn for a distance of 0, which a log axis does not have."""


@dataclass(frozen=True)
class Picture:
    """An image for a page, and what it shows in words."""

    alt: str
    uri: str


def losses(runs: Sequence[Run], expected: dict[int | None, Array], title: str) -> Picture:
    """The loss of every step of all runs and, below, their distance from `expected`.

    `expected` has the losses (steps,) that runs are compared with, by their number of shards.
    """
    figure = _figure(10, 5)
    above, below = figure.subplots(2, 1, sharex=True)
    for run in runs:
        found, style = run.arrays["losses"], _style(run)
        steps = np.arange(1, len(found) + 1)
        above.plot(steps, found, **style)
        answer = expected.get(run.shards)
        if answer is not None and answer.shape == found.shape:
            far = np.abs(found - answer) / np.abs(answer).max()
            below.plot(steps, np.maximum(far, TINY), **style)
    above.set(ylabel="training loss")
    below.set(xlabel="step", ylabel="relative distance", yscale="log")
    above.legend(title="framework, devices", fontsize="small", ncols=2)
    return Picture(f"{title}: training losses, and their distance from the answer", _uri(figure))


def accuracies(runs: Sequence[Run], title: str) -> Picture:
    """Test accuracy, seconds and images per second of every epoch."""
    figure = _figure(10, 3.2)
    axes = figure.subplots(1, 3)
    for run in runs:
        epochs = run.record.epochs
        numbers, style = [each.epoch for each in epochs], _style(run)
        axes[0].plot(numbers, [each.test_accuracy for each in epochs], **style)
        axes[1].plot(numbers, [each.seconds for each in epochs], **style)
        axes[2].plot(numbers, [each.images_per_second for each in epochs], **style)
    for each, label in zip(axes, ("test accuracy", "seconds", "images per second"), strict=True):
        each.set(xlabel="epoch", ylabel=label)
    axes[0].legend(fontsize="x-small")
    return Picture(f"{title}: test accuracy, seconds and images per second by epoch", _uri(figure))


def _figure(width: float, height: float) -> Any:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update({"svg.hashsalt": "parity", "font.size": 10})
    return Figure(figsize=(width, height), layout="constrained")


def _style(run: Run) -> dict[str, Any]:
    framework, devices = run.record.framework, run.devices
    return {
        "color": f"C{FRAMEWORKS.index(framework)}",
        "linestyle": DASHES[(devices - 1) % len(DASHES)],
        "linewidth": 1,
        "label": f"{framework}, {devices}",
    }


def _uri(figure: Any) -> str:
    """The figure as an image that is part of the page: nothing in it can run, or reach out."""
    for axes in figure.axes:
        axes.grid(alpha=0.3)
    file = BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()
