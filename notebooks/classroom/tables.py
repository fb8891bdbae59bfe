"""The tables of the chapter on parity: distances of runs, and where a wrong one diverges."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from rich.console import Console

from common.base.arrays import Array
from common.compare.distances import compare, distance
from common.compare.findings import Comparison
from common.compare.runs import NUMERICAL, RecordedRun
from common.report.text import columns, rows
from common.terminal.tables import Cell, table
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


def print_checks(comparison: Comparison) -> None:
    """Prints a row for each check, with each framework's worst figure."""
    print_table(["check", *columns(comparison), "limit"], rows(comparison))


def most_failures(comparison: Comparison) -> str:
    """The framework with the most failed checks."""
    failed = Counter(check.framework for check in comparison.checks if not check.passed)
    return failed.most_common(1)[0][0]


def differences(ours: RecordedRun, expected: RecordedRun) -> list[Difference]:
    """All arrays that are off by more than rounding, in the order of computation."""
    found = []
    for prefix in ORDER:
        for off in compare(ours.arrays, expected.arrays, prefix):
            if not off.far <= ROUNDED:
                fit = best_factor(ours.arrays[off.array], expected.arrays[off.array])
                found.append(Difference(off.array, off.far, *fit))
    return found


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table as text; a heading may have several lines."""
    texts = [[in_digits(cell) for cell in row] for row in rows]
    console = Console(file=sys.stdout, width=110, force_jupyter=False, highlight=False)
    console.print(table(headings, texts))


def in_digits(cell: object) -> str | Cell:
    """A number in three digits, very small and large ones as powers of ten; others as they are."""
    if isinstance(cell, float | np.floating):
        number = float(cell)
        return f"{number:.3g}" if number == 0 or 1e-2 <= abs(number) < 1e4 else f"{number:.1e}"
    return cell if isinstance(cell, tuple) else str(cell)
