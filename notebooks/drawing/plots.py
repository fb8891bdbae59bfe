"""Line plots of runs as SVG."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array
from common.drawing import svg

COLOURS: Final = ("#0b62a8", "#b84a00", "#00795a", "#7a3b9d")
DASHES: Final = ("", "7 3", "2 2", "7 2 2 2", "1 3")
WIDTH, HEIGHT, MARGIN, LEADING = 560, 190, 64, 18
"""Of the axes, of the space around them, and of a line of text."""


@dataclass(frozen=True)
class Line:
    """Points (n,) of a run; the more devices it had, the thinner is the line."""

    framework: str
    devices: int
    x: Array
    y: Array

    def path(self, data: str) -> str:
        kind = FRAMEWORKS.index(self.framework)
        stroke = f'stroke="{COLOURS[kind % 4]}" stroke-dasharray="{DASHES[kind % 5]}"'
        width = max(1.5, 4 - self.devices)
        return f'<path fill="none" {stroke} stroke-width="{width}" d="{data}"/>'


@dataclass(frozen=True)
class Panel:
    """A pair of axes."""

    xlabel: str
    ylabel: str
    lines: Sequence[Line]


def plot(panels: Sequence[Panel]) -> str:
    """The panels, one below the other; one legend serves all of them."""
    parts: list[str] = []
    for number, panel in enumerate(panels):
        top = number * (HEIGHT + MARGIN) + MARGIN / 3
        parts += drawn(panel, top)
    top = len(panels) * (HEIGHT + MARGIN) + 0.4 * MARGIN
    parts.append(svg.text(MARGIN, top, "framework, devices:", anchor="start"))
    runs = {(line.framework, line.devices): line for panel in panels for line in panel.lines}
    for number, ((framework, devices), line) in enumerate(runs.items()):
        x = MARGIN + number % 4 * WIDTH / 4
        y = top + LEADING * (1 + number // 4)
        parts.append(line.path(f"M{x:.0f} {y - 4:.0f}h36"))
        parts.append(svg.text(x + 42, y, f"{framework}, {devices}", anchor="start"))
    height = top + LEADING * (1 + math.ceil(len(runs) / 4))
    shown = " and ".join(panel.ylabel for panel in panels)
    return svg.picture(WIDTH + 2 * MARGIN, height, "Runs", shown, parts) + "\n"


def drawn(panel: Panel, top: float) -> Iterator[str]:
    """The axes with their ticks, and the lines, the thin ones on top."""
    lines = sorted(panel.lines, key=lambda line: line.devices)
    bottom, right = top + HEIGHT, MARGIN + WIDTH
    xs, ys = ends([line.x for line in lines]), ends([line.y for line in lines])

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
    yield svg.text(MARGIN + WIDTH / 2, bottom + 34, panel.xlabel)
    yield svg.text(MARGIN, top - 8, panel.ylabel, anchor="start")
    for line in lines:
        shown = np.isfinite(line.y)
        pairs = zip(across(line.x[shown]), down(line.y[shown]), strict=True)
        points = "L".join(f"{a:.1f} {b:.1f}" for a, b in pairs)
        yield line.path(f"M{points}") if points else ""


def ends(arrays: Sequence[Array]) -> tuple[float, float]:
    """The least and the largest finite value of all."""
    values = np.concatenate([*arrays, np.empty(0)])
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    return low, high if high > low else low + 1


def ticks(low: float, high: float, least: float = 0) -> Array:
    """At most seven round numbers, `least` or more apart."""
    most = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(most))
    step = max(least, next(m * power for m in (1, 2, 5, 10) if m * power >= most))
    return step * np.arange(math.ceil(low / step), math.floor(high / step) + 1)
