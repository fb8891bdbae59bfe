"""The tables of the chapter on parity: distances of runs, and where a wrong one diverges."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from rich.console import Console

from common.base.arrays import Array
from common.base.errors import RunError
from common.compare.checks import SuiteResult
from common.compare.distances import compare, distance
from common.compare.findings import HEADINGS, Check
from common.compare.runs import NUMERICAL, Run
from common.terminal.tables import table
from common.terminal.text import printable
from notebooks.classroom.experiment import Runs

ORDER: Final = ("trace/weights/0/", *NUMERICAL.values())
"""Prefixes of the names of arrays, in the order of computation."""

ROUNDED: Final = 1e-10
"""The tolerance: two float64 runs differ by less in their first steps."""


class Difference(NamedTuple):
    """The distance of an array, the best factor for the right one, and the residual after it.

    Both are relative, as the distances of `common.compare.distances`.
    """

    array: str
    distance: float
    factor: float
    residual: float


def pair_distances(runs: Runs, prefix: str) -> dict[str, dict[str, float]]:
    """The distance of each two runs, by array and by pair: two names in two lines.

    Of all arrays whose name starts with `prefix`; relative to the largest entry of the second.
    """
    distances: dict[str, dict[str, float]] = {}
    for first, second in combinations(runs, 2):
        for off in compare(runs[first].arrays, runs[second].arrays, prefix):
            distances.setdefault(off.array, {})[f"{first}\n{second}"] = off.far
    return distances


def largest_distances(runs: Runs, prefix: str) -> dict[str, float]:
    """For each array, the largest distance of two runs."""
    return {name: max(pairs.values()) for name, pairs in pair_distances(runs, prefix).items()}


def best_factor(ours: Array, expected: Array) -> tuple[float, float]:
    """The least-squares factor from `expected` to `ours`, and the residual.

    The residual is relative to the largest entry of `ours`.
    """
    x, y = expected.ravel().astype(np.float64), ours.ravel().astype(np.float64)
    factor = float(x @ y / (x @ x)) if x.any() else 0.0
    residual, _ = distance(factor * x, y)
    return factor, residual


def verdicts(examined: SuiteResult, devices: int = 1) -> list[list[str]]:
    """A row for each check of the runs on so many devices: its heading, then each framework's.

    The frameworks are in the order of `examined.found`.
    """
    checks = [check for check in examined.comparison.checks if check.devices == devices]
    frameworks = [run.framework for run in examined.found if run.devices == devices]
    rows = []
    for name in dict.fromkeys(check.check for check in checks):
        results = {check.framework: check for check in checks if check.check == name}
        rows.append([HEADINGS[name], *(_cell(results.get(framework)) for framework in frameworks)])
    return rows


def _cell(check: Check | None) -> str:
    if check is None:
        return "not compared"
    mark = "✓" if check.passed else "✗"
    return mark if check.distance is None else f"{check.distance:.1e} {mark}"


def most_failures(examined: SuiteResult) -> str:
    """The framework with the most failed checks. Raises RunError if none has failed."""
    failed = Counter(check.framework for check in examined.comparison.checks if not check.passed)
    if not failed:
        raise RunError("all checks passed: no framework is suspect")
    return failed.most_common(1)[0][0]


def differences(ours: Run, expected: Run) -> list[Difference]:
    """All arrays that are off by more than rounding, in the order of computation."""
    rows = []
    for prefix in ORDER:
        for off in compare(ours.arrays, expected.arrays, prefix):
            if not off.far <= ROUNDED:
                fit = best_factor(ours.arrays[off.array], expected.arrays[off.array])
                rows.append(Difference(off.array, off.far, *fit))
    return rows


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table as text; a heading may have several lines."""
    text = table(headings)
    for row in rows:
        text.add_row(*(printable(in_digits(cell)) for cell in row))
    Console(file=sys.stdout, width=110, force_jupyter=False, highlight=False).print(text)


def in_digits(cell: object) -> str:
    """A cell as text; very small and large numbers as powers of ten."""
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.3g}" if cell == 0 or 1e-2 <= abs(cell) < 1e4 else f"{cell:.1e}"
