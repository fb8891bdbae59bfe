"""How far arrays are apart."""

import numpy as np

from common.compare.distances import compare, distance
from common.compare.findings import farthest
from common.compare.recorded_steps import beyond, movement


def test_distance_is_relative_to_the_largest_entry_and_never_forgives_nan() -> None:
    expected = np.array([[0.0, 4.0], [1.0, -2.0]])
    far, where = distance(expected + np.array([[0, 0], [0.2, 0]]), expected)
    assert (round(far, 12), where) == (0.05, (1, 0))
    assert distance(np.full((2, 2), np.nan), expected)[0] == np.inf
    assert distance(expected[0], expected)[0] == np.inf
    assert compare({}, {"a/b": expected}, "a/")[0].far == np.inf
    assert compare({"a/b": expected}, {}, "a/")[0].far == np.inf


def test_an_infinite_weight_has_no_movement_and_no_finite_weight_loses_its() -> None:
    moved, rounding = movement(np.array([np.inf, 1]), np.array([np.inf, 0]), 0.5)
    np.testing.assert_array_equal(moved, [np.nan, 2])
    np.testing.assert_array_equal(beyond(moved, rounding), [np.inf, 0])


def test_what_cannot_be_compared_has_no_distance() -> None:
    name = "gradients/conv1.bias"
    far = compare({name: np.full(3, np.nan)}, {name: np.ones(3)}, "gradients/")
    found = farthest("gradient", far, 1e-10)
    assert (found.passed, found.distance, found.tolerance) == (False, None, 1e-10)
    assert (found.share, found.diverged) == (np.inf, [name])
