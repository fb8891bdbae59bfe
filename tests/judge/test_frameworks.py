"""The judge in each framework: its allreduce and port are right, and its users' mistakes named."""

from collections.abc import Sequence
from importlib import import_module
from inspect import getsource
from typing import Any

import pytest

from common.judge.judgement import in_framework, judge

SLIPS = {
    "tensorflow": [
        ("model", "Permute((3, 1, 2))", "Permute((1, 2, 3))", "lenet flattened with channels last"),
        ("model", "layers.Dense(10)", 'layers.Dense(10, "softmax")', "lenet after a softmax"),
        ("step", "SGD()", "SGD(momentum=0.9)", "has 1.8 times the last update added: momentum"),
        ("allreduce", "total = data[0]\n", "total = data[0] / len(data)\n", "sum of 1/2 x 0 and 1"),
    ],
    "pytorch": [
        ("model", "AvgPool2d", "MaxPool2d", "with the largest entries of windows in place of mean"),
        ("step", "self.optimizer.zero_grad()", "", "has 1 times the last update added: momentum,"),
        ("step", "SGD(self.net.parameters()", "SGD(list(self.net.parameters())[1:]", "not changed"),
        ("allreduce", ", copy=True", "", "devices 0 and 1 share the memory of one array"),
        ("allreduce", ".clone()", "", "of the caller's arrays, only those of devices 0 are"),
    ],
    "jax": [
        ("model", "jax.nn.relu", "jax.nn.sigmoid", "lenet with sigmoids in place of ReLUs"),
        ("step", "axis=1).mean()", "axis=1).sum()", "that of the sum over 12 examples, not of"),
        ("allreduce", "in data[1:]:", "in data:", "size 1, float64: device 0 has 2 times the sum"),
    ],
    "mxnet": [
        ("model", "AvgPool2D()", "MaxPool2D()", "with the largest entries of windows in place of"),
        ("step", "step(len(y))", "step(1)", "that of the sum over 12 examples, not of their mean"),
        ("step", "step(len(y))", "step(12)", "the gradient is 0.916667 times the right one"),
        ("allreduce", "return [total", "data[:] = [total", "device 1 has the values of 1 only"),
    ],
}
"""By framework: the kind, the place of right code that a user writes otherwise, and the verdict."""

RIGHT = [(kind, "", "", "right: ") for kind in ("model", "step", "allreduce")]

CASES = [
    pytest.param(case, marks=pytest.mark.only(name))
    for name, slips in SLIPS.items()
    for case in [*RIGHT, *slips]
]


@pytest.mark.parametrize("case", CASES)
def test_a_verdict_in_a_framework(
    framework: str, listing: Any, all_devices: Sequence[Any], case: tuple[str, str, str, str]
) -> None:
    kind, old, new, text = case
    port = import_module(f"frameworks.{framework}.port").Port
    changed: Any = listing.allreduce if kind == "allreduce" else port
    names = dict(vars(import_module(changed.__module__)))
    assert old in getsource(changed)
    exec(getsource(changed).replace(old, new), names)

    def model(weights: Any, X: Any) -> Any:
        reader = names["Port"]()
        reader.start(weights)
        return reader.logits(X)

    candidate = model if kind == "model" else names[changed.__name__]
    setting = in_framework(framework if kind == "allreduce" else None, all_devices)
    assert text in judge(kind, candidate, setting).text.splitlines()[0]
