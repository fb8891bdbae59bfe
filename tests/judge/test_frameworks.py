"""The judge in each framework: its listing is right, and slips of its users are named."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from inspect import getsource
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array, Weights
from common.chapters.scratch import ScratchOptions
from common.judge.judgement import in_framework, judge

SLIPS = """
tensorflow | model | (dense(X, | (dense(tf.reshape(X, (-1, 800)), | flattened with channels last
tensorflow | step | (lr * | (2 * lr * | the gradient is the right one × 2
tensorflow | allreduce | = data[0] | = 2 * data[0] | device 0 has 2 times the sum
pytorch | model | avg_pool2d(r | F.max_pool2d(kernel_size=2, input=r | with the largest entries
pytorch | step | grads[name] | (grads[name] + 0.5 * param) | has 0.5 times the weight added
pytorch | allreduce | , copy=True | | devices 0 and 1 share the memory of one array
pytorch | allreduce | .clone() | | of the caller's arrays, only those of devices 0 are
jax | model | relu( | jax.nn.sigmoid( | lenet with sigmoids in place of ReLUs
jax | step | .sum() / examples | .sum() | that of the sum over 12 examples, not of
jax | allreduce | in data[1:]: | in data: | size 1, float64: device 0 has 2 times the s
mxnet | model | relu(dense( | (dense( | lenet but for
mxnet | step | .sum() / examples | .sum() / 12 | the gradient is the right one × 0.916667
mxnet | allreduce | return [total | data[:] = [total | device 1 has the values of 1 only
"""
"""A framework, a kind, a place of its listing, what a user writes there, and the verdict."""

CASES = [[word.strip() for word in line.split("|")] for line in SLIPS.strip().splitlines()]
CASES += [[*pair, "", "", "right: "] for pair in product(FRAMEWORKS, ("model", "step"))]


@dataclass
class Port:
    """A listing on some devices, as the kinds `model` and `step` call it."""

    chapter: Any
    devices: Sequence[Any]

    def start(self, weights: Weights) -> None:
        self.trainer = self.chapter.trainer(weights, self.devices, ScratchOptions())

    def step(self, X: Array, y: Array, lr: float) -> Any:
        return self.trainer.train_batch(X, y, lr)

    def weights(self) -> Any:
        return self.trainer.export()

    def model(self, weights: Weights, X: Array) -> Any:
        self.start(weights)
        return self.trainer.predict(X)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.only(name)) for name, *case in CASES]
)
def test_a_verdict_in_a_framework(
    framework: str,
    scratch: Any,
    all_devices: Sequence[Any],
    case: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind, old, new, text = case
    monkeypatch.setattr("common.judge.steps.wrappers", dict)  # those of other tests are here
    source = getsource(scratch.listing)
    assert old in source
    names: dict[str, Any] = {"__name__": "changed"}
    exec(source.replace(old, new), names)
    port = Port(replace(scratch, listing=SimpleNamespace(**names)), all_devices[:2])
    candidate = {"model": port.model, "step": port, "allreduce": names["allreduce"]}[kind]
    setting = in_framework(framework if kind == "allreduce" else None, all_devices)
    assert text in judge(kind, candidate, setting).text.splitlines()[0]
