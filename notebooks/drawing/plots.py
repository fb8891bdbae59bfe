"""The curves of a run as SVG."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from common.base.arrays import Array
from common.drawing import svg

WIDTH, HEIGHT, MARGIN = 560, 190, 64
"""Of the axes, and of the space around them."""

MEANS: Final = 60
"""Points of a whole run's losses: those of single steps are noisy."""

HIGHEST: Final = 5.0
"""The largest loss that is drawn: one that diverges runs along the upper edge."""

STROKE: Final = 'stroke="#0b62a8" stroke-width="2"'


def curves(title: str, losses: Sequence[float], accuracies: Sequence[float]) -> str:
    """The means of losses over equal parts of the epochs, and the accuracy after each epoch."""
    parts = np.array_split(losses, min(MEANS, len(losses)))
    means = np.minimum([part.mean() for part in parts], HIGHEST)
    middles = (np.arange(len(parts)) + 0.5) / len(parts) * len(accuracies)
    epochs = np.arange(len(accuracies)) + 1
    step = HEIGHT + MARGIN  # from one curve to the next
    loss = curve("training loss", middles, means, MARGIN / 3)
    accuracy = curve("accuracy", epochs, np.array(accuracies), MARGIN / 3 + step)
    described = "training loss and accuracy"
    return svg.picture(WIDTH + 2 * MARGIN, 2 * step, title, described, [*loss, *accuracy]) + "\n"


def curve(name: str, x: Array, y: Array, top: float) -> Iterator[str]:
    """Points (n,) in their axes, with ticks."""
    bottom, right = top + HEIGHT, MARGIN + WIDTH
    xs, ys = ends(x), ends(y)
    yield svg.path(f"M{MARGIN} {top:.0f}V{bottom:.0f}H{right}", "frame")
    for tick in ticks(*xs, least=1):
        yield svg.text(np.interp(tick, xs, (MARGIN, right)), bottom + 16, f"{tick:g}")
    for tick in ticks(*ys):
        height = np.interp(tick, ys, (bottom, top))
        yield svg.path(f"M{MARGIN} {height:.1f}H{right}", "rule")
        yield svg.text(MARGIN - 6, height + 4, f"{tick:g}", anchor="end")
    yield svg.text(MARGIN + WIDTH / 2, bottom + 34, "epoch")
    yield svg.text(MARGIN, top - 8, name, anchor="start")
    places = zip(np.interp(x, xs, (MARGIN, right)), np.interp(y, ys, (bottom, top)), strict=True)
    yield f'<path fill="none" {STROKE} d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in places)}"/>'


def ends(values: Array) -> tuple[float, float]:
    """The least and the largest value, which differ."""
    low, high = values.min(), values.max()
    return low, high if high > low else low + 1


def ticks(low: float, high: float, least: float = 0) -> Array:
    """At most seven round numbers, `least` or more apart."""
    most = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(most))
    step = max(least, next(m * power for m in (1, 2, 5, 10) if m * power >= most))
    return step * np.arange(math.ceil(low / step), math.floor(high / step) + 1)
