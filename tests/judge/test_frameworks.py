"""The judge in each framework: its allreduce and port are right, and its users' mistakes named."""

from collections.abc import Sequence
from importlib import import_module
from inspect import getsource
from itertools import product
from typing import Any

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.judge.judgement import in_framework, judge

SLIPS = [
    ("tensorflow", "model", "(3, 1, 2)", "(1, 2, 3)", "lenet flattened with channels last"),
    ("tensorflow", "step", "SGD()", "SGD(momentum=0.9)", "1.8 times the last update added: momen"),
    ("tensorflow", "allreduce", "= data[0]\n", "= 2 * data[0]\n", "device 0 has 2 times the sum"),
    ("pytorch", "model", "AvgPool2d", "MaxPool2d", "with the largest entries of windows in place"),
    ("pytorch", "step", "self.optimizer.zero_grad()", "", "has 1 times the last update added: mom"),
    ("pytorch", "allreduce", ", copy=True", "", "devices 0 and 1 share the memory of one array"),
    ("pytorch", "allreduce", ".clone()", "", "of the caller's arrays, only those of devices 0 are"),
    ("jax", "model", "nn.relu", "nn.sigmoid", "lenet with sigmoids in place of ReLUs"),
    ("jax", "step", "axis=1).mean()", "axis=1).sum()", "that of the sum over 12 examples, not of"),
    ("jax", "allreduce", "in data[1:]:", "in data:", "size 1, float64: device 0 has 2 times the s"),
    ("mxnet", "model", 'nn.Dense(128, activation="relu")', "nn.Dense(128)", "lenet but for"),
    ("mxnet", "step", "step(len(y))", "step(12)", "the gradient is the right one × 0.916667"),
    ("mxnet", "allreduce", "return [", "data[:] = [", "device 1 has the values of 1 only"),
    *((*pair, "", "", "right: ") for pair in product(FRAMEWORKS, ("model", "step", "allreduce"))),
]
"""A kind in a framework, a place of right code that users write otherwise, and the verdict."""

CASES = [pytest.param(case, marks=pytest.mark.only(name)) for name, *case in SLIPS]


@pytest.mark.parametrize("case", CASES)
def test_a_verdict_in_a_framework(
    framework: str, listing: Any, all_devices: Sequence[Any], case: Sequence[str]
) -> None:
    kind, old, new, text = case
    port = import_module(f"frameworks.{framework}.port").Port
    right: Any = listing.allreduce if kind == "allreduce" else port
    assert old in getsource(right)
    names = dict(vars(import_module(right.__module__)))
    exec(getsource(right).replace(old, new), names)

    def model(weights: Any, X: Any) -> Any:
        reader = names["Port"]()
        reader.start(weights)
        return reader.logits(X)

    setting = in_framework(framework if kind == "allreduce" else None, all_devices)
    candidate = model if kind == "model" else names[right.__name__]
    assert text in judge(kind, candidate, setting).text.splitlines()[0]
