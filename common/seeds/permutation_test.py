"""Whether it matters in which column a figure stands: a permutation test of repeated measures."""

import math
from itertools import permutations
from typing import Annotated, Final

import numpy as np
from pydantic import BaseModel, Field

from common.base.arrays import Array

MOST: Final = 400_000
"""Up to so many relabellings all are counted; of more, `DRAWS` are drawn."""

DRAWS: Final = 20_000

TIE: Final = 1e-9
"""Of the sum of all squares: what sums of squares may differ by for rounding alone."""


Share = Annotated[float, Field(ge=0, le=1)]


class PermutationTest(BaseModel):
    """What the test found. With so few figures, p cannot be below `smallest`."""

    statistic: float
    p_value: Share
    relabellings: int
    exact: bool
    smallest: float


def permutation_test(figures: Array) -> PermutationTest:
    """Tests whether the columns of `figures` (rows, columns) are exchangeable within each row.

    The statistic is the variance of the columns' means. Figures can be exchanged within each row in
    many ways. The p-value is the share of these ways that make the statistic at least as large. If
    the columns are exchangeable, labels say nothing: then p is below any x with a probability of x
    at most. To exchange whole columns changes nothing, so the first row stays as it is. If there
    are too many ways, some are drawn, always the same; the figures as they are count as one way.
    Source: E. S. Edgington and P. Onghena, Randomization Tests, on repeated-measures designs.
    """
    rows, columns = figures.shape
    # What a row has in common is in every relabelling: without it less is rounded.
    table = figures - figures.mean(axis=1, keepdims=True)
    ways = math.factorial(columns) ** (rows - 1)
    exact = ways <= MOST
    sums = _all_sums(table) if exact else _drawn_sums(table)
    least = table.sum(axis=0).var() - TIE * (table**2).sum()
    as_large = int((sums.var(axis=1) >= least).sum())
    # Of the drawn ones, the figures as they are stand beside them; of all, they are one of them.
    observed = 0 if exact else 1
    return PermutationTest(
        statistic=float(figures.mean(axis=0).var(ddof=1)),
        p_value=(as_large + observed) / (len(sums) + observed),
        relabellings=len(sums),
        exact=exact,
        smallest=1 / (len(sums) + observed),
    )


def _all_sums(table: Array) -> Array:
    """The columns' sums (ways, columns) of every way to exchange entries; the first row stays."""
    sums = table[:1]
    for row in table[1:]:
        orders = np.array(list(permutations(row)))
        sums = (sums[:, None] + orders).reshape(-1, table.shape[1])
    return sums


def _drawn_sums(table: Array) -> Array:
    """The columns' sums (DRAWS, columns) of ways that are drawn, each row by itself."""
    random = np.random.RandomState(0)
    sums = np.zeros((DRAWS, table.shape[1]))
    for row in table:
        sums += row[random.random_sample(sums.shape).argsort(axis=1)]
    return sums
