"""What arrays tell about a mistake: the truth where there is one to tell, and nothing else."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from common.base.arrays import Array
from common.diagnose.explanations import AXES, flatten_orders, statistics

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


@pytest.mark.parametrize(
    ("diverged", "what"),
    [
        (["bn1.running_mean", "bn1.running_var"], "statistics of batch normalization diverge"),
        (["bn1.running_var"], "but the variance is computed otherwise"),
        (["fc.bias", "bn1.running_var"], ""),
    ],
)
def test_statistics_that_alone_diverge_are_named(diverged: list[str], what: str) -> None:
    hints = list(statistics([f"weights/{name}" for name in diverged]))
    assert [each.tensor for each in hints] == ([diverged[0]] if what else [])
    assert all(what in each.text for each in hints)
