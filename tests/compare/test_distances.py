"""How far arrays are apart."""

from pathlib import Path

import numpy as np
from agreement import failures, rewrite

from common.compare.distances import compare, distance
from common.compare.folder import judge
from common.compare.movement import movement
from common.compare.taken import Taken
from common.records.store import read_record, read_tensors
from common.report.text import describe


def test_distance_is_relative_to_the_largest_entry_and_never_forgives_nan() -> None:
    expected = np.array([[0.0, 4.0], [1.0, -2.0]])
    far, where = distance(expected + np.array([[0, 0], [0.2, 0]]), expected)
    assert (round(far, 12), where) == (0.05, (1, 0))
    assert distance(np.full((2, 2), np.nan), expected)[0] == np.inf
    assert distance(expected[0], expected)[0] == np.inf
    assert compare({}, {"a/b": expected}, "a/")[0].far == np.inf
    assert compare({"a/b": expected}, {}, "a/")[0].far == np.inf


def test_an_infinite_weight_has_no_movement_and_no_finite_weight_loses_its() -> None:
    before, after, grad = (np.array(v, np.float32) for v in ([np.inf, 1], [np.inf, 0], [1, 2]))
    step = Taken("scratch", 1, before, grad, 0.5, {"w": before}, {"w": after}, 1.0, [(0, 2)])
    found = movement(step, {"w": grad}).beside({"w": grad})
    np.testing.assert_array_equal(found["w"], [np.nan, 2])


def test_what_cannot_be_compared_has_no_distance_and_is_said_so(results: Path) -> None:
    path = results / "float64/pytorch-scratch-1dev.json"
    values = read_tensors(path, read_record(path))["gradients/conv1.bias"]
    rewrite(path, {"gradients/conv1.bias": np.full_like(values, np.nan)})
    found = failures(judge(results))
    (wrong,) = (each for each in found if (each.check, each.devices) == ("gradient", 1))
    assert (wrong.distance, wrong.comparable, wrong.share) == (None, False, np.inf)
    assert describe(wrong).endswith("gradients/conv1.bias cannot be compared")
