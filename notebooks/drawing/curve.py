"""Loss and test accuracy as a picture that is drawn in a moment: training does not wait for it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Final

Point = tuple[float, float]

MEANS: Final = 60
"""Points of a whole run's losses."""

HIGHEST: Final = 5.0
"""What the axis shows at most: a loss that diverges runs along the upper edge."""

WIDTH: Final = 460
HEIGHT: Final = 270
LEFT: Final = 44
RIGHT: Final = 16
TOP: Final = 34
BOTTOM: Final = 44

STYLE: Final = """
.curve { --card: #ffffff; --ink: #24292f; --faint: #d0d7de; --loss: #0b6bcb; --accuracy: #b35900 }
@media (prefers-color-scheme: dark) {
  .curve { --card: #1b1f24; --ink: #e6edf3; --faint: #3d444d; --loss: #6cb6ff; --accuracy: #ffb26b }
}
.curve { max-width: 100%; height: auto; font: 13px system-ui, sans-serif }
.curve text { fill: var(--ink) }
.curve .card { fill: var(--card); stroke: var(--faint) }
.curve .grid { stroke: var(--faint) }
.curve path { fill: none; stroke-width: 2 }
.curve .loss { stroke: var(--loss) }
.curve .accuracy { stroke: var(--accuracy); stroke-dasharray: 6 4 }
.curve circle { fill: var(--card); stroke: var(--accuracy); stroke-width: 2 }
"""


@dataclass
class Curve:
    """What a run has reached so far: losses within its epochs, and figures after each."""

    epochs: int = 1
    losses: list[Point] = field(default_factory=list)
    accuracies: list[Point] = field(default_factory=list)

    @property
    def done(self) -> int:
        """The epochs that are over."""
        return len(self.accuracies)

    def loss(self, share: float, loss: float) -> None:
        """The loss of a step, after this share of the current epoch."""
        self.losses.append((self.done + share, loss))

    def epoch(self, loss: float, accuracy: float) -> None:
        """The mean loss of an epoch, and the test accuracy after it."""
        if not any(self.done < x <= self.done + 1 for x, _ in self.losses):
            self.losses.append((self.done + 0.5, loss))  # it was too short for a look at a step
        self.accuracies.append((self.done + 1.0, accuracy))

    def finish(self, losses: Sequence[float]) -> None:
        """The loss of every step, now that all are known: drawn as means, for one step is noisy."""
        steps, many = len(losses), min(len(losses), MEANS)
        bounds = [steps * i // many for i in range(many + 1)]
        self.losses = [
            ((a + b) / 2 / steps * self.epochs, fmean(losses[a:b])) for a, b in pairwise(bounds)
        ]

    def svg(self) -> str:
        """The picture, light or dark as the reader's system is."""
        finite = [loss for _, loss in self.losses if math.isfinite(loss)]
        top = 1.05 * min(max([1.0, *finite]), HIGHEST)
        drawn = [
            f'<path class="loss" d="{_path(self._place(self.losses, top))}"/>',
            f'<path class="accuracy" d="{_path(self._place(self.accuracies, top))}"/>',
            *(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
                for x, y in self._place(self.accuracies, top)
            ),
        ]
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="curve" role="img" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
            f"<title>{self._words()}</title><style>{STYLE}</style>"
            f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>'
        )
        return "\n".join([head, *self._axes(top), *drawn, "</svg>"])

    def _words(self) -> str:
        if not self.accuracies:
            return "training loss and test accuracy, before the end of the first epoch"
        return f"training loss and test accuracy; {self.accuracies[-1][1]:.3f} after the last epoch"

    def _place(self, points: Sequence[Point], top: float) -> list[Point]:
        """Where points (epochs, value) lie in the picture."""
        wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        inside = [(x, min(y, top)) for x, y in points if math.isfinite(y)]
        return [(LEFT + wide * x / self.epochs, TOP + high * (1 - y / top)) for x, y in inside]

    def _axes(self, top: float) -> list[str]:
        """The grid, its numbers, and what the lines are."""
        lines = []
        for value in (each * 0.5 for each in range(int(top / 0.5) + 1)):
            ((x, y),) = self._place([(0, value)], top)
            lines.append(f'<path class="grid" d="M{x:.1f} {y:.1f}H{WIDTH - RIGHT}"/>')
            lines.append(
                f'<text x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
            )
        every = max(1, -(-self.epochs // 10))
        for epoch in range(0, self.epochs + 1, every):
            ((x, y),) = self._place([(epoch, 0)], top)
            lines.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{epoch}</text>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        lines.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">epoch</text>')
        return lines + _key()


def _key() -> list[str]:
    return [
        f'<path class="loss" d="M{LEFT} 18h26"/><text x="{LEFT + 34}" y="22">training loss</text>',
        f'<path class="accuracy" d="M{LEFT + 150} 18h26"/><circle cx="{LEFT + 163}" cy="18" r="4"/>'
        f'<text x="{LEFT + 184}" y="22">test accuracy</text>',
    ]


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) if points else ""
