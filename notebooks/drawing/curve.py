"""Training loss and test accuracy as a picture."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final

from common.drawing import svg

Point = tuple[float, float]

MEANS: Final = 60
"""Points of a whole run's losses."""

HIGHEST: Final = 5.0
"""The largest loss on the axis: one that diverges runs along the upper edge."""

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 270, 44, 16, 34, 44
"""Of the picture, and of the space around its axes."""


def means(losses: Sequence[float], epochs: int) -> list[Point]:
    """Points of means over some steps, because the losses of single steps are noisy."""
    steps, many = len(losses), min(len(losses), MEANS)
    bounds = [steps * i // many for i in range(many + 1)]
    return [((a + b) / 2 / steps * epochs, fmean(losses[a:b])) for a, b in pairwise(bounds)]


def curve(epochs: int, losses: Sequence[Point], accuracies: Sequence[float]) -> str:
    """The losses by epoch, and the accuracy after each."""
    finite = [loss for _, loss in losses if math.isfinite(loss)]
    top = 1.05 * min(max([1.0, *finite]), HIGHEST)

    def place(epoch: float, value: float) -> Point:
        across, up = epoch / epochs, min(value, top) / top
        return LEFT + (WIDTH - LEFT - RIGHT) * across, TOP + (HEIGHT - TOP - BOTTOM) * (1 - up)

    def line(points: Sequence[Point], part: str) -> str:
        places = [place(x, y) for x, y in points if math.isfinite(y)]
        joined = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        return svg.path(f"M{joined}", part) if joined else ""

    parts = []
    for value in (half / 2 for half in range(int(2 * top) + 1)):
        x, y = place(0, value)
        parts.append(svg.path(f"M{x:.1f} {y:.1f}H{WIDTH - RIGHT}", "rule"))
        parts.append(svg.text(x - 8, y + 4, f"{value:g}", anchor="end"))
    for epoch in range(0, epochs + 1, max(1, -(-epochs // 10))):
        parts.append(svg.text(place(epoch, 0)[0], HEIGHT - BOTTOM + 18, str(epoch)))
    parts.append(svg.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "epoch"))
    for x, part, words in ((0, "flow", "training loss"), (150, "copies", "test accuracy")):
        parts.append(svg.path(f"M{LEFT + x} 18h26", part))
        parts.append(svg.text(LEFT + x + 34, 22, words, anchor="start"))
    tested = [(float(epoch), share) for epoch, share in enumerate(accuracies, 1)]
    parts += [line(losses, "flow"), line(tested, "copies")]
    parts += [svg.dot(*place(*point), "head") for point in tested]
    last = f"Accuracy: {accuracies[-1]:.3f} after the last epoch"
    return svg.picture(WIDTH, HEIGHT, "Training loss and test accuracy", last, parts)
