"""Where the limit of a check comes from, and when what it compares was computed."""

from collections.abc import Iterable
from dataclasses import dataclass

from common.compare.accuracy import setting
from common.compare.checks import Run, allowed
from common.compare.criteria import CRITERIA
from common.compare.findings import Check
from common.compare.tolerances import Tolerance


def tolerance_of(check: Check, run: Run) -> Tolerance | None:
    """The tolerance that a check applied; None if it asked for equality, or found none."""
    if check.tolerance is None:
        return None
    held_to = CRITERIA[run.record.chapter]
    if check.check == "curve":
        return held_to.curve
    if check.check in ("accuracy", "spread"):
        table = held_to.floor if check.check == "accuracy" else held_to.spread
        return table[setting(run.record)]
    return allowed(run)[check.quantity]


@dataclass(frozen=True)
class Limit:
    """A tolerance that some checks applied, with a number on the page."""

    number: int
    tolerance: Tolerance
    applied: list[str]


def limits(found: Iterable[tuple[Tolerance | None, str]]) -> dict[Tolerance, Limit]:
    """Every tolerance once, from pairs of a tolerance and what it was applied to."""
    made: dict[Tolerance, Limit] = {}
    for tolerance, what in found:
        if tolerance is not None:
            limit = made.setdefault(tolerance, Limit(len(made), tolerance, []))
            if what not in limit.applied:
                limit.applied.append(what)
    return made


def place(check: Check, run: Run) -> tuple[str, str]:
    """The array, with the entry, and the step at which a check found the largest distance."""
    if check.tolerance is None or check.check in ("curve", "accuracy", "spread"):
        return check.where, ""
    if check.check == "steps":
        return check.where, f"step {check.step}"
    last = f"after step {len(run.record.losses)}"
    steps = {"forward": "before step 1", "gradient": "step 1", "weights": last, "outcome": last}
    if check.quantity == "trajectory":
        return "losses", check.where
    return check.where, steps[check.quantity]
