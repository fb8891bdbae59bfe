"""What the checks of a run found."""

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel

from common.compare.distances import Distance
from common.compare.limits import Tolerance
from common.terminal.text import printable

HEADINGS: Final = {
    "record": "complete, fresh, same setting",
    "shapes": "names, shapes, counts",
    "peers": "compared with another run",
    "layers": "layers before training",
    "forward": "logits before training",
    "gradient": "gradient of the first step",
    "trajectory": "losses of the first steps",
    "steps": "each step, from its own weights",
    "weights": "weights at the end",
    "layers_after": "layers at the end",
    "outcome": "logits at the end",
    "devices": "k devices = 1 device",
    "plan": "sent and kept as planned",
    "hosts": "h hosts = 1 host",
    "gpus": "k GPUs = k CPU devices",
    "curve": "mean loss of every epoch",
    "accuracy": "test accuracy",
    "spread": "spread of accuracies",
}
"""What each check compares, in words."""

Printable = Annotated[str, AfterValidator(printable)]
"""Text of a finding: a name in it may come from anywhere."""


class Finding(BaseModel):
    """What one check of a run found.

    `where` is the worst entry, of `array` at `step`, or the worst epoch. `quantity` says whose
    tolerance was applied; without a tolerance, equality is required. With a tolerance and without a
    distance, nothing could be compared: NaN, or another shape. `diverged` names every array that is
    too far off, in the net's order. Of `steps` compared, rounding hides how `hidden` moved weights.
    """

    check: str
    passed: bool
    quantity: str = ""
    distance: float | None = None
    tolerance: float | None = None
    where: Printable = ""
    array: Printable = ""
    step: int | None = None
    note: Printable = ""
    diverged: list[Printable] = []
    steps: int = 0
    hidden: int = 0

    @property
    def place(self) -> str:
        """Where it is worst, in words."""
        return self.where if self.step is None else f"step {self.step}, {self.where}"

    @property
    def comparable(self) -> bool:
        """Whether there is a distance, or none is asked for."""
        return self.tolerance is None or self.distance is not None

    @property
    def share(self) -> float:
        """The distance as a share of the limit, above 1 if it failed; -1 if there is no limit."""
        if not self.tolerance:
            return -1.0
        if self.distance is None:
            return math.inf
        if self.check == "accuracy":  # the more, the better
            return self.tolerance / self.distance if self.distance else math.inf
        return self.distance / self.tolerance


class Check(Finding):
    """What a check found, of which run."""

    suite: str
    chapter: str
    framework: str
    devices: int


def farthest(check: str, quantity: str, found: Sequence[Distance], tolerance: Tolerance) -> Finding:
    """What a check of distances found: the largest, and every array that is too far off."""
    worst = max(found, key=lambda each: each.far)
    return Finding(
        check=check,
        quantity=quantity,
        passed=worst.far <= tolerance.limit,
        distance=worst.far if math.isfinite(worst.far) else None,
        tolerance=tolerance.limit,
        where=worst.where,
        array=worst.array,
        step=worst.step,
        diverged=[each.array for each in found if not each.far <= tolerance.limit],
    )


def nearest_to_failing(found: Iterable[Finding]) -> Finding:
    """Of several findings, the one that does."""
    return max(found, key=lambda each: each.share)
