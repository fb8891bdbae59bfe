"""What the checks of runs found, and the verdict that follows."""

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel

from common.base.errors import printable
from common.compare.distances import Distance
from common.settings.config import Config

HEADINGS: Final = {
    "record": "complete, fresh, same setting",
    "shapes": "names, shapes, counts",
    "peers": "compared with another run",
    "layers": "layers before training",
    "forward": "logits before training",
    "gradient": "gradient of the first step",
    "trajectory": "losses of the first steps",
    "second": "loss after the first update",
    "steps": "each step, from its own weights",
    "weights": "weights at the end",
    "layers_after": "layers at the end",
    "outcome": "logits at the end",
    "devices": "k devices = 1 device",
    "plan": "sent and kept as planned",
    "gpus": "k GPUs = k CPU devices",
    "resumed": "resumed = straight, in every bit",
    "curve": "mean loss of every epoch",
    "accuracy": "test accuracy",
    "spread": "spread of accuracies",
}
FIRST: Final = {"record": 0, "steps": 1, "peers": 3, "devices": 3}
"""The places of failed checks that tell more, or less, than others."""

Printable = Annotated[str, AfterValidator(printable)]


class Check(BaseModel):
    """What one check of a run found.

    `where` is the worst entry, of `array` at `step`. `quantity` says whose tolerance it was;
    without one, equality is required. There is no distance from NaN, or another shape. `diverged`
    are all arrays too far off, in the net's order. Of `steps`, rounding hides `hidden`.
    """

    check: str = ""
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
    suite: str = ""
    chapter: str = ""
    framework: str = ""
    devices: int = 0

    @property
    def place(self) -> str:
        return self.where if self.step is None else f"step {self.step}, {self.where}"

    @property
    def why(self) -> str:
        if self.note:
            return self.note
        if self.distance is None:
            return f"{self.place} cannot be compared"
        most = f"at most {self.tolerance:.1e} is allowed"
        first = ""
        if self.check.startswith("layers") and self.diverged:
            first = f"; the first layer off is {self.diverged[0].rpartition('/')[2]}"
        return f"{self.distance:.1e} at {self.place}, {most}{first}"

    @property
    def share(self) -> float:
        """The distance as a share of the limit, if any: above 1 if it failed."""
        if not self.tolerance:
            return -1.0
        if self.distance is None:
            return math.inf
        if self.quantity == "accuracy":  # the more, the better
            return self.tolerance / self.distance if self.distance else math.inf
        return self.distance / self.tolerance


class Comparison(BaseModel):
    """One suite of one chapter; what frameworks are `lacking` is why they have no runs."""

    suite: str
    chapter: str
    config: Config | None
    compared_with: str
    checks: list[Check]
    notes: list[str] = []
    lacking: dict[str, str] = {}

    @property
    def title(self) -> str:
        counts = sorted({check.devices for check in self.checks})
        of_many = "" if counts == [1] else "s"
        return f"{self.chapter}, {self.suite}, on {', '.join(map(str, counts))} device{of_many}"


class Verdict(BaseModel):
    """The verdict on a folder. `not_run`: suites of the grid; `ignored`: records of no suite."""

    passed: bool
    created: str
    comparisons: list[Comparison]
    not_run: list[str] = []
    ignored: list[str] = []

    @property
    def checks(self) -> list[Check]:
        return [check for comparison in self.comparisons for check in comparison.checks]

    @property
    def failures(self) -> list[Check]:
        """First the runs that failed, then wrong steps; last those that rest on other runs."""
        failed = [check for check in self.checks if not check.passed]
        return sorted(failed, key=lambda check: FIRST.get(check.check, 2))


def farthest(quantity: str, distances: Sequence[Distance], limit: float | None) -> Check:
    """What a check of distances found; without a limit, they only have to be finite."""
    worst = max(distances, key=lambda distance: distance.far)
    most = sys.float_info.max if limit is None else limit
    return Check(
        check=quantity,
        quantity=quantity,
        passed=worst.far <= most,
        distance=worst.far if math.isfinite(worst.far) else None,
        tolerance=limit,
        where=worst.where,
        array=worst.array,
        step=worst.step,
        diverged=[distance.array for distance in distances if not distance.far <= most],
    )


def nearest_to_failing(checks: Iterable[Check]) -> Check:
    return max(checks, key=lambda check: check.share)
