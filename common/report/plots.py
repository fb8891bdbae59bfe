"""Line plots of runs as SVG: the same numbers give the same bytes."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import escape

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array

COLOURS: Final = ("#0b62a8", "#b84a00", "#00795a", "#7a3b9d")
DASHES: Final = ("", "7 3", "2 2", "7 2 2 2", "1 3")
"""Of the frameworks: colour is never the only difference between two lines."""

WIDTH, HEIGHT, MARGIN, LEADING = 560, 190, 64, 18
"""Of the axes, of the space around them, and of a line of text, in pixels."""


@dataclass(frozen=True)
class Line:
    """Points (n,) of a run; the more devices it had, the thinner is the line."""

    framework: str
    devices: int
    x: Array
    y: Array

    def path(self, data: str) -> str:
        """A path in its colour, dashes and width."""
        kind = FRAMEWORKS.index(self.framework)
        stroke = f'stroke="{COLOURS[kind % 4]}" stroke-dasharray="{DASHES[kind % 5]}"'
        width = max(1.5, 4 - self.devices)
        return f'<path fill="none" {stroke} stroke-width="{width}" d="{data}"/>'


@dataclass(frozen=True)
class Panel:
    """A pair of axes; each of `limits`, (x, y), is a horizontal line at y, up to x."""

    xlabel: str
    ylabel: str
    lines: Sequence[Line]
    log: bool = False
    limits: Sequence[tuple[float, float]] = ()


def plot(panels: Sequence[Panel]) -> str:
    """The panels, one below the other; one legend serves all of them."""
    below = HEIGHT + MARGIN
    parts = [part for i, panel in enumerate(panels) for part in _panel(panel, i * below)]
    top = len(panels) * below + 0.4 * MARGIN
    parts.append(_text(MARGIN, top, "framework, devices:", "start"))
    runs = {(line.framework, line.devices): line for panel in panels for line in panel.lines}
    for i, ((framework, devices), line) in enumerate(runs.items()):
        x, y = MARGIN + i % 4 * WIDTH / 4, top + LEADING * (1 + i // 4)
        parts.append(line.path(f"M{x:.0f} {y - 4:.0f}h36"))
        parts.append(_text(x + 42, y, f"{framework}, {devices}", "start"))
    height = top + LEADING * (1 + math.ceil(len(runs) / 4))
    size = f'viewBox="0 0 {WIDTH + 2 * MARGIN} {height:.0f}"'
    font = 'font-family="sans-serif" font-size="13"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>'
    return "\n".join([start, *parts, "</svg>", ""])


def _panel(panel: Panel, top: float) -> Iterator[str]:
    """The axes with their ticks, and the lines, the thin ones on top."""
    drawn = []
    for line in sorted(panel.lines, key=lambda line: line.devices):
        with np.errstate(divide="ignore"):  # 0 is not drawn where there are logarithms
            heights = np.log10(line.y) if panel.log else line.y
        there = np.isfinite(heights)
        drawn.append((line, line.x[there], heights[there]))
    limits = [(end, math.log10(y) if panel.log else y) for end, y in panel.limits]
    x_low, x_high = _range(x for _, x, _ in drawn)
    y_low, y_high = _range([np.array([y for _, y in limits]), *(y for _, _, y in drawn)])
    left, top = MARGIN, top + MARGIN / 3

    def across(x: Any) -> Any:
        return left + (x - x_low) / (x_high - x_low) * WIDTH

    def down(y: Any) -> Any:
        return top + (y_high - y) / (y_high - y_low) * HEIGHT

    yield f'<path fill="none" stroke="#888" d="M{left} {top:.0f}v{HEIGHT}h{WIDTH}"/>'
    for tick in _ticks(x_low, x_high, least=1):
        yield _text(across(tick), top + HEIGHT + 16, f"{tick:g}")
    for tick in _ticks(y_low, y_high, least=1 if panel.log else 0):
        yield f'<path stroke="#ddd" d="M{left} {down(tick):.1f}h{WIDTH}"/>'
        label = f"1e{tick:.0f}" if panel.log else f"{tick:g}"
        yield _text(left - 6, down(tick) + 4, label, "end")
    yield _text(left + WIDTH / 2, top + HEIGHT + 34, panel.xlabel)
    yield _text(left, top - 8, panel.ylabel, "start")
    for end, limit in limits:
        line_at = f"M{left} {down(limit):.1f}H{across(end):.1f}"
        yield f'<path stroke="#000" stroke-width="2" d="{line_at}"/>'
        yield _text(left + 4, down(limit) + 14, "limit", "start")
    for line, x, y in drawn:
        points = [f"{a:.1f} {b:.1f}" for a, b in zip(across(x), down(y), strict=True)]
        yield line.path(f"M{'L'.join(points)}") if points else ""


def _range(values: Iterable[Array]) -> tuple[float, float]:
    """The least and the largest of all values, which are never the same."""
    every = np.concatenate([*values, np.empty(0)])
    low, high = (every.min(), every.max()) if every.size else (0.0, 1.0)
    return float(low), float(high if high > low else low + 1)


def _ticks(low: float, high: float, least: float) -> Array:
    """At most seven round numbers, `least` or more apart, from `low` to `high`."""
    power = 10.0 ** math.floor(math.log10((high - low) / 6))
    step = max(least, next(m * power for m in (1, 2, 5, 10) if (high - low) / (m * power) <= 6))
    return step * np.arange(math.ceil(low / step), math.floor(high / step) + 1)


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
