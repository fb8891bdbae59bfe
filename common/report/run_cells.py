"""The runs of the grid as a page shows them: worst numbers, checks, and where limits come from."""

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from common.compare.accuracy import setting
from common.compare.checks import Run, allowed
from common.compare.collect import LoadedRecord
from common.compare.criteria import CRITERIA
from common.compare.findings import HEADINGS, Check
from common.compare.suite import SuiteResult
from common.compare.tolerances import Tolerance

LACKING: Final = {"devices": "alone", "forward": "no limit"}
"""What a run lacks whose check has found nothing to compare, else the check's name."""


@dataclass(frozen=True)
class Line:
    """One check of a run, in words."""

    heading: str
    passed: bool
    figure: str
    limit: str
    tolerance: Tolerance | None
    where: str
    step: str


@dataclass(frozen=True)
class Cell:
    """One run of the grid. `figure` is its worst number, as a share of the limit."""

    anchor: str
    found: LoadedRecord
    passed: bool
    figure: str
    worst: str
    lines: list[Line]

    @property
    def command(self) -> list[str]:
        """The command that made the record, each word as a shell takes it."""
        return [*map(shlex.quote, self.found.record.command if self.found.record else [])]

    @property
    def dtype(self) -> str:
        """The type of the run's numbers; empty without a record."""
        return self.found.record.config.dtype if self.found.record else ""


def cell(found: LoadedRecord, examined: SuiteResult) -> Cell:
    """A run of the grid, with its checks."""
    checks = examined.checks(found)
    shares = {HEADINGS[each.check]: share for each in checks if (share := each.share) >= 0}
    worst = max(shares, key=lambda heading: shares[heading], default="")
    share, passed = shares.get(worst, -1.0), all(check.passed for check in checks)
    return Cell(
        anchor=anchor(found, examined),
        found=found,
        passed=passed,
        # A run may fail for something that has no number, however good its numbers are.
        figure=short(share) if share >= 0 and passed == (share <= 1) else state(found, checks),
        worst=worst,
        lines=[line(check, found) for check in checks],
    )


def state(found: LoadedRecord, checks: Sequence[Check]) -> str:
    """Why no number tells how a run stands, in a word."""
    lacking = next((each.check for each in checks if not each.passed and not each.tolerance), "")
    if lacking != "record":
        return LACKING.get(lacking, lacking)
    if found.record is None:
        return "no record"
    return "refused" if found.record.status == "complete" else found.record.status


def short(number: float) -> str:
    """A number above 0 in at most five characters or so."""
    if number == math.inf:
        return "∞"
    if 1e-2 <= number < 1e3 or number == 0:
        return f"{number:.2g}" if number < 100 else f"{number:.0f}"
    digits, _, exponent = f"{number:.0e}".partition("e")
    return f"{digits}e{int(exponent)}"


def anchor(found: LoadedRecord, examined: SuiteResult) -> str:
    """The anchor of a run on the page."""
    comparison = examined.comparison
    return f"{comparison.chapter}-{comparison.suite}-{found.framework}-{found.devices}"


def line(check: Check, found: LoadedRecord) -> Line:
    """A check in words."""
    where, step = place(check, found.run) if found.run else ("", "")
    if check.distance is not None:
        figure = f"{check.distance:.2e}"
    elif check.comparable:
        figure = "yes" if check.passed else "no"
    else:
        figure = "not finite"
    return Line(
        heading=HEADINGS[check.check],
        passed=check.passed,
        figure=figure,
        limit="exact" if check.tolerance is None else f"{check.tolerance:g}",
        tolerance=tolerance_of(check, found.run) if found.run else None,
        where=check.note or where,
        step=step,
    )


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
