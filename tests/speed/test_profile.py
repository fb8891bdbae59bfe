"""The profile: operations that a framework's profiler sees, as a table."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.profile import PROFILERS, table
from common.chapters.scratch import ScratchOptions
from common.models.initial import initial_weights
from common.models.nets import LENET

NEEDED = {
    "pytorch": "aten::convolution_backward",
    "tensorflow": "Conv2DBackpropFilter",
    "jax": "dot",
    "mxnet": "_backward_Convolution",
}
"""An operation of each framework that LeNet's backward pass cannot do without."""


def test_every_framework_says_what_takes_its_time(
    framework: str, scratch: Any, all_devices: Sequence[Any]
) -> None:
    X, y = np.ones((8, 1, 28, 28), "float32"), np.arange(8)
    devices = all_devices[:1]
    weights = initial_weights(LENET, 0, "float32")
    replicas = scratch.replicate(weights, devices, ScratchOptions())

    def step() -> None:
        scratch.train_batch(X, y, replicas, devices, 0.1, ScratchOptions())
        scratch.synchronize(replicas)

    step()
    spent = PROFILERS[framework](step)
    assert 0 < spent[NEEDED[framework]] < 10


def test_the_table_begins_with_what_takes_longest() -> None:
    spent = Counter({"relu": 0.5, "conv": 1.5, "rare": 0.0})
    *_, first, second = table(spent, steps=10, rows=2)
    assert first == "| conv | 150.0 | 75 % |"
    assert second == "| relu | 50.0 | 25 % |"
