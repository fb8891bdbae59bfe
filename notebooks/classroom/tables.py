"""How far runs are apart, who is wrong and where: the tables of the chapter on parity."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from rich.console import Console

from common.base.arrays import Array
from common.base.errors import RunError
from common.compare.checks import NUMERICAL, Run
from common.compare.distances import compare, distance
from common.compare.findings import HEADINGS, Check
from common.compare.suite import SuiteResult
from common.terminal.tables import table
from common.terminal.text import printable
from notebooks.classroom.experiment import Runs

ORDER: Final = ("trace/weights/0/", *NUMERICAL.values())
"""Arrays in the order in which a run comes past them, by how their names start."""

ROUNDED: Final = 1e-10
"""The distance up to which two float64 runs differ by rounding, in their first steps."""


class Difference(NamedTuple):
    """How far an array is off; by what factor the right one comes nearest, and what is left then.

    Distances are relative, as those of `common.compare.distances`.
    """

    array: str
    distance: float
    factor: float
    left: float


def pair_distances(runs: Runs, prefix: str) -> dict[str, dict[str, float]]:
    """How far apart each two runs are, by array and by pair: two names, one below the other.

    Of all arrays whose name starts with `prefix`; relative to the largest entry of the second.
    """
    found: dict[str, dict[str, float]] = {}
    for one, other in combinations(runs, 2):
        for each in compare(runs[one].arrays, runs[other].arrays, prefix):
            found.setdefault(each.array, {})[f"{one}\n{other}"] = each.far
    return found


def farthest(runs: Runs, prefix: str) -> dict[str, float]:
    """For each array, how far the two runs are apart that are farthest from each other."""
    return {name: max(pairs.values()) for name, pairs in pair_distances(runs, prefix).items()}


def multiple(ours: Array, expected: Array) -> tuple[float, float]:
    """The factor by which `expected` comes nearest to `ours`, and the distance that is left.

    What is left is relative to the largest entry of `ours`.
    """
    one, other = ours.ravel().astype(np.float64), expected.ravel().astype(np.float64)
    factor = float(one @ other / (other @ other)) if other.any() else 0.0
    left, _ = distance(factor * other, one)
    return factor, left


def verdicts(examined: SuiteResult) -> list[list[str]]:
    """A row for each check of the runs on one device: what it is about, and what it says of each.

    The frameworks are in the order of `examined.found`.
    """
    checks = [each for each in examined.comparison.checks if each.devices == 1]
    rows = []
    for name in dict.fromkeys(each.check for each in checks):
        said = {each.framework: each for each in checks if each.check == name}
        cells = [_judged(said.get(each.framework)) for each in examined.found if each.devices == 1]
        rows.append([HEADINGS[name], *cells])
    return rows


def _judged(check: Check | None) -> str:
    if check is None:
        return "not looked at"
    mark = "✓" if check.passed else "✗"
    return mark if check.distance is None else f"{check.distance:.1e} {mark}"


def accused(examined: SuiteResult) -> str:
    """The framework with the most failed checks. Raises RunError if none has failed."""
    failed = Counter(each.framework for each in examined.comparison.checks if not each.passed)
    if not failed:
        raise RunError("every check has passed: no framework is accused")
    return failed.most_common(1)[0][0]


def differences(ours: Run, expected: Run) -> list[Difference]:
    """Every array that is off by more than rounding, in the order of computing."""
    rows = []
    for prefix in ORDER:
        for each in compare(ours.arrays, expected.arrays, prefix):
            if not each.far <= ROUNDED:
                values = ours.arrays[each.array], expected.arrays[each.array]
                rows.append(Difference(each.array, each.far, *multiple(*values)))
    return rows


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table as text; a heading may have several lines."""
    made = table(headings)
    for row in rows:
        made.add_row(*(printable(shown(cell)) for cell in row))
    Console(file=sys.stdout, width=110, force_jupyter=False, highlight=False).print(made)


def shown(cell: object) -> str:
    """A cell in words; numbers that are very small or large as powers of ten."""
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.3g}" if cell == 0 or 1e-2 <= abs(cell) < 1e4 else f"{cell:.1e}"
