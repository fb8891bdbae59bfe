"""What arrays tell about a mistake: the truth where there is one to tell, and nothing else."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from common.base.arrays import Array
from common.compare.checks import Run
from common.diagnose.explanations import AXES, flatten_orders, reordered, statistics
from common.records.store import read_record

PLANES = (50, 4, 4)
FLATTENED = {"fc1.weight": PLANES}
RANDOM = np.random.RandomState(3)
GRADIENT = RANDOM.standard_normal((800, 128)) * RANDOM.lognormal(size=(800, 1))
ANOTHER_MASK = RANDOM.random_sample((800, 128)) < 0.5
ORDERS = list(permutations(range(3)))[1:]


def in_order(gradient: Array, axes: tuple[int, ...]) -> Array:
    """Rows that run over channels, rows and columns, in another order."""
    return gradient.reshape(*PLANES, 128).transpose(*axes, 3).reshape(800, 128)


@pytest.mark.parametrize("axes", ORDERS)
def test_every_wrong_order_of_flattening_is_recognized(axes: tuple[int, ...]) -> None:
    # Which units open differs, so that no entry need be the same.
    wrong = in_order(GRADIENT * (1 + ANOTHER_MASK), axes)
    (hint,) = flatten_orders(
        FLATTENED, {"gradients/fc1.weight": wrong}, {"gradients/fc1.weight": GRADIENT}
    )
    assert hint.tensor == "fc1.weight"
    order = ", ".join(AXES[axis] for axis in axes)
    assert f"stand in the order ({order}), not (channel, row, column)" in hint.text


def test_weights_that_were_reordered_where_they_should_not_are_recognized() -> None:
    wrong = GRADIENT.reshape(4, 4, 50, 128).transpose(2, 0, 1, 3).reshape(800, 128)
    (hint,) = flatten_orders(
        FLATTENED, {"weights/fc1.weight": wrong}, {"weights/fc1.weight": GRADIENT}
    )
    assert "as if they had stood in (row, column, channel)" in hint.text


@given(st.integers(0, 2**31), st.floats(0, 1))
def test_other_mistakes_are_not_taken_for_an_order(seed: int, share: float) -> None:
    random = np.random.RandomState(seed)
    noise = random.standard_normal(GRADIENT.shape) * random.lognormal(size=(800, 1))
    wrong = (1 - share) * GRADIENT + share * noise
    name = "gradients/fc1.weight"
    assert list(flatten_orders(FLATTENED, {name: wrong}, {name: GRADIENT})) == []
    assert list(flatten_orders(FLATTENED, {name: np.zeros((800, 128))}, {name: GRADIENT})) == []


def test_the_same_numbers_in_another_order_are_recognized() -> None:
    name = "gradients/conv1.weight"
    right = RANDOM.standard_normal((20, 1, 3, 3))
    (hint,) = reordered({name: right.transpose(0, 1, 3, 2)}, {name: right}, [name])
    assert hint.tensor == "conv1.weight"
    assert list(reordered({name: right + 0.01}, {name: right}, [name])) == []
    assert list(reordered({name: right.transpose(0, 1, 3, 2)}, {name: right}, [])) == []


def test_statistics_tell_a_momentum_from_another_variance(ours: Path) -> None:
    # Any record will do: the hints read its number of steps, and that it started from the seed.
    run = Run(read_record(ours), {})
    steps = len(run.record.losses)
    means = {f"weights/bn{n}.running_mean": RANDOM.standard_normal(4) for n in (1, 2)}
    variances = {f"weights/bn{n}.running_var": 1 + RANDOM.random_sample(4) for n in (1, 2)}
    expected = means | variances
    slower = (1 - 0.99**steps) / (1 - 0.9**steps)
    late = {k: v * slower for k, v in means.items()}
    late |= {k: 1 + (v - 1) * slower for k, v in variances.items()}
    first, second = statistics(run, late, expected, list(expected))
    assert first.tensor == "bn1.running_mean"
    assert "as if each step replaced about 0.01 of them, not 0.1" in second.text
    unbiased = means | {k: 1.1 * v for k, v in variances.items()}
    first, second = statistics(run, unbiased, expected, list(variances))
    assert first.tensor == "bn1.running_var"
    assert "the variance is computed otherwise" in second.text
    noise = {k: RANDOM.standard_normal(4) for k in expected}
    assert len(list(statistics(run, noise, expected, list(expected)))) == 1
    assert list(statistics(run, late, expected, ["weights/fc.bias", *expected])) == []
