"""In float32, rounding is all that parts a framework from the exact answer."""

from collections.abc import Sequence
from typing import Any

import judge
import numpy as np
import pytest
from scratch_steps import batches, far

from common.base.arrays import Weights
from common.chapters.scratch import ScratchOptions
from common.models.nets import LENET

STEPS = 20


def decided(dtype: str) -> Weights:
    """Weights with biases so large that every ReLU unit is open, or shut, for good.

    A unit whose input lies within rounding of zero may open in one framework and not in another,
    and that moves a gradient by far more than rounding does. Here no unit is in doubt.
    """
    random = np.random.RandomState(5)
    scales = {"conv1.bias": 2.0, "conv2.bias": 20.0, "fc1.bias": 40.0}
    weights = {}
    for name, shape in LENET.items():
        drawn = random.standard_normal(shape) * (0.02 if name.startswith("fc") else 0.1)
        if name in scales:
            drawn = scales[name] * np.where(random.random_sample(shape) < 0.5, -1.0, 1.0)
        weights[name] = drawn.astype(np.float32).astype(dtype)
    return weights


@pytest.mark.parametrize("k", [1, 3])
def test_without_units_in_doubt_training_stays_within_rounding(
    scratch: Any, all_devices: Sequence[Any], k: int
) -> None:
    lr, weights = 1e-4, decided("float64")
    replicas = scratch.replicate(decided("float32"), all_devices[:k], ScratchOptions())
    for (x, y), (X, _) in zip(
        batches(STEPS, 35, "float64"), batches(STEPS, 35, "float32"), strict=True
    ):
        steps = judge.forward(x, weights)
        for name in ("z1", "z2", "z3"):
            assert np.abs(steps[name]).min() > 1e-3 * np.abs(steps[name]).max()
        _, gradients = judge.loss_and_gradients(x, y, weights)
        weights = {name: weights[name] - lr * gradients[name] for name in weights}
        scratch.train_batch(X, y, replicas, all_devices[:k], lr, ScratchOptions())
    assert far(weights, decided("float64")) > 1e-2  # it did train
    assert far(scratch.export(replicas), weights) < 1e-5
