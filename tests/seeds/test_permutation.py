"""The permutation test: against another way to count, and on figures whose truth is known."""

from itertools import permutations, product

import numpy as np
import pytest

from common.base.arrays import Array
from common.seeds import permutation_test as permutation
from common.seeds.permutation_test import permutation_test


def drawn(seed: int, rows: int, columns: int) -> Array:
    """Exchangeable figures: each row has a level of its own, as each seed has."""
    random = np.random.RandomState(seed)
    return (
        0.8
        + 0.02 * random.standard_normal((rows, 1))
        + 0.01 * random.standard_normal((rows, columns))
    )


def counted(figures: Array) -> float:
    """The p-value by writing every table out, the first row's exchanges included."""
    observed = np.var(figures.mean(axis=0))
    tables = product(*(permutations(row) for row in figures.tolist()))
    found = [np.var(np.mean(table, axis=0)) for table in tables]
    return float(np.mean([statistic >= observed - 1e-12 for statistic in found]))


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (5, 2), (2, 4), (4, 3)])
def test_the_exact_p_value_is_that_of_counting(rows: int, columns: int) -> None:
    for seed in range(3):
        figures = drawn(seed, rows, columns)
        found = permutation_test(figures)
        assert found.exact
        assert found.p_value == pytest.approx(counted(figures), abs=1e-12)
        assert found.statistic == pytest.approx(figures.mean(axis=0).var(ddof=1))


def test_ties_count_as_large() -> None:
    ties = np.array([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2], [0.2, 0.3, 0.1]])
    assert permutation_test(ties).p_value == 1
    assert permutation_test(np.full((3, 3), 0.1)).p_value == 1
    coarse = np.round(drawn(0, 4, 3), 2)
    assert permutation_test(coarse).p_value == pytest.approx(counted(coarse), abs=1e-12)


def test_a_shift_of_one_column_is_found() -> None:
    for seed in range(20):
        figures = drawn(seed, 5, 4)
        figures[:, 2] += 0.05
        # Were it only ever the largest of four: a fourth, to the power of four.
        assert permutation_test(figures).p_value < 0.005


def test_what_all_columns_share_says_nothing() -> None:
    figures = drawn(1, 4, 3)
    level = np.array([[0.0], [0.1], [-0.3], [7.0]])
    assert permutation_test(figures).p_value == permutation_test(figures + level).p_value


def test_p_values_of_exchangeable_figures_are_uniform() -> None:
    values = np.array([permutation_test(drawn(seed, 5, 3)).p_value for seed in range(400)])
    for share in (0.05, 0.1, 0.25, 0.5, 0.75):
        # Three standard errors of a share of 400; p takes steps of 1/1296.
        assert abs((values <= share).mean() - share) <= 3 * (share * (1 - share) / 400) ** 0.5


def test_a_drawn_p_value_is_near_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [drawn(seed, 5, 3) for seed in range(5)]
    tables[0][:, 0] += 0.1
    exact = [permutation_test(table).p_value for table in tables]
    monkeypatch.setattr(permutation, "MOST", 1)
    for table, p in zip(tables, exact, strict=True):
        found = permutation_test(table)
        assert not found.exact
        assert found == permutation_test(table)  # the same at every time
        assert abs(found.p_value - p) <= 4 * (p / permutation.DRAWS) ** 0.5
        assert found.p_value >= found.smallest == 1 / (permutation.DRAWS + 1)


def test_so_few_figures_have_a_smallest_p_value() -> None:
    shifted = drawn(0, 2, 2) + np.arange(2)
    assert permutation_test(shifted).p_value == permutation_test(shifted).smallest == 1 / 2
    shifted = drawn(0, 5, 4) + np.arange(4)
    assert permutation_test(shifted).p_value == permutation_test(shifted).smallest == 24.0**-4
    assert permutation_test(shifted).relabellings == 24**4
