"""Solutions of the chapter on ways to split, against formulas and against the plan."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scratch_steps import batches, far, start

from common.chapters.strategies import StrategiesOptions
from common.compare import numpy_nets
from common.parallel.parts import parts_of
from notebooks.exercises.strategies import (
    cut_by,
    cut_by_rows,
    fewest_microbatches,
    gradient_on_mesh,
    most_weights,
    waiting,
)

P = 129_068


def test_stages_are_cut_where_it_costs_least() -> None:
    plan = StrategiesOptions("pipeline", depth=4).plan(4)
    works = [plan.work(layer) for layer in plan.layers]
    assert cut_by(plan, plan.work) == ((1, 1, 1, 5), max(works) / sum(works))
    counts, share = cut_by(plan, plan.size)
    assert share == plan.size("fc1") / sum(map(plan.size, plan.layers))
    assert (len(counts), sum(counts)) == (4, len(plan.layers))


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("p", "m"), [(1, 1), (2, 3), (4, 4), (4, 9)])
def test_the_bubble_is_that_of_the_formula(schedule: str, p: int, m: int) -> None:
    assert waiting(schedule, p, m) == pytest.approx((p - 1) / (m + p - 1))


@pytest.mark.parametrize(("p", "most"), [(2, 0.5), (4, 0.1), (3, 0.3), (5, 0.2)])
def test_so_few_microbatches_suffice(p: int, most: float) -> None:
    assert fewest_microbatches(p, most) == math.ceil((p - 1) * (1 - most) / most - 1e-9)


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_a_bias_on_each_device_is_added_so_often(devices: int) -> None:
    random = np.random.default_rng(0)
    X, weight, bias = (random.normal(size=shape) for shape in ((4, 7), (7, 5), (5,)))
    once, each = (
        cut_by_rows(X, weight, bias, devices, bias_on_each=on_each) for on_each in (False, True)
    )
    assert_allclose(once, X @ weight + bias, rtol=0, atol=1e-14)
    assert_allclose(each - once, np.broadcast_to((devices - 1) * bias, (4, 5)), atol=1e-14)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_weights_that_stay_are_all_of_them_and_more(k: int) -> None:
    plan = StrategiesOptions("zero3").plan(k)
    zeros = {name: np.zeros(shape) for name, shape in plan.shapes.items()}
    for device in range(k):
        own = sum(part.size for part in parts_of(zeros, plan.weights, device).values())
        assert most_weights(plan, device, keep=True) == own + P
        assert most_weights(plan, device, keep=False) == own + plan.size("fc1")


def test_a_mesh_by_hand_has_the_gradient_of_one_device(
    strategies: Any, all_devices: Sequence[Any]
) -> None:
    weights, (X, y) = start("float64"), batches(1, 11, "float64")[0]
    found = gradient_on_mesh(strategies, weights, (X, y), all_devices[:4], [8, 3])
    options = StrategiesOptions("tensor", replicas=2, microbatches=1)
    split = strategies.replicate(weights, all_devices[:4], options)
    assert far(found, strategies.gradients(X, y, split, all_devices[:4], options)) < 1e-12
    right = numpy_nets.step("strategies", X, y, weights, [(0, len(y))]).gradients
    assert far(found, right) < 1e-12
