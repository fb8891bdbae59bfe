"""The runs of the grid as a page shows them: each with its worst number and all its checks."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from common.compare.collect import LoadedRecord
from common.compare.findings import HEADINGS, Check
from common.compare.suite import SuiteResult
from common.compare.tolerances import Tolerance
from common.report.limits import place, tolerance_of

LACKING: Final = {"devices": "alone", "forward": "no limit"}
"""What a run lacks whose check has found nothing to compare, else the check's name."""

MOST_WORDS: Final = 100
"""Words of a command that are shown."""


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
        """The command that made the record, each word as a shell takes it; the first of many."""
        words = self.found.record.command if self.found.record else []
        return [*map(shlex.quote, words[:MOST_WORDS]), *(["..."] if words[MOST_WORDS:] else [])]

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
