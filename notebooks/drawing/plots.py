"""Curves of a run as SVG."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from common.base.arrays import Array
from common.drawing import svg

WIDTH, HEIGHT, MARGIN = 560, 190, 64
"""Of the axes, and of the space around them."""

STROKE: Final = 'stroke="#0b62a8" stroke-width="2"'


@dataclass(frozen=True)
class Curve:
    """Points (n,) between a pair of axes."""

    xlabel: str
    ylabel: str
    x: Array
    y: Array


def plot(title: str, curves: Sequence[Curve]) -> str:
    """The curves, one below the other."""
    parts: list[str] = []
    for number, curve in enumerate(curves):
        parts += drawn(curve, number * (HEIGHT + MARGIN) + MARGIN / 3)
    shown = " and ".join(curve.ylabel for curve in curves)
    height = len(curves) * (HEIGHT + MARGIN)
    return svg.picture(WIDTH + 2 * MARGIN, height, title, shown, parts) + "\n"


def drawn(curve: Curve, top: float) -> Iterator[str]:
    """The axes with their ticks, and the curve."""
    bottom, right = top + HEIGHT, MARGIN + WIDTH
    xs, ys = ends(curve.x), ends(curve.y)

    def across(x: Any) -> Any:
        return np.interp(x, xs, (MARGIN, right))

    def down(y: Any) -> Any:
        return np.interp(y, ys, (bottom, top))

    yield svg.path(f"M{MARGIN} {top:.0f}V{bottom:.0f}H{right}", "frame")
    for tick in ticks(*xs, least=1):
        yield svg.text(across(tick), bottom + 16, f"{tick:g}")
    for tick in ticks(*ys):
        yield svg.path(f"M{MARGIN} {down(tick):.1f}H{right}", "rule")
        yield svg.text(MARGIN - 6, down(tick) + 4, f"{tick:g}", anchor="end")
    yield svg.text(MARGIN + WIDTH / 2, bottom + 34, curve.xlabel)
    yield svg.text(MARGIN, top - 8, curve.ylabel, anchor="start")
    shown = np.isfinite(curve.y)
    pairs = zip(across(curve.x[shown]), down(curve.y[shown]), strict=True)
    points = "L".join(f"{a:.1f} {b:.1f}" for a, b in pairs)
    yield f'<path fill="none" {STROKE} d="M{points}"/>' if points else ""


def ends(values: Array) -> tuple[float, float]:
    """The least and the largest finite value."""
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    return low, high if high > low else low + 1


def ticks(low: float, high: float, least: float = 0) -> Array:
    """At most seven round numbers, `least` or more apart."""
    most = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(most))
    step = max(least, next(m * power for m in (1, 2, 5, 10) if m * power >= most))
    return step * np.arange(math.ceil(low / step), math.floor(high / step) + 1)
