"""What a whole run tells of its first wrong step, beyond what fits that step alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import make
from numpy_chapter import Momentum, NumpyChapter

from common.base.arrays import Array
from common.compare import numpy_nets
from common.compare.numpy_nets import Step
from common.compare.recorded_steps import recompute
from common.diagnose.hints import hint
from common.pairs.runs import read_run


class Nesterov(Momentum):
    def taken(self, grad: Array, velocity: Array) -> Array:
        return grad + 0.9 * velocity


class Rounded(Momentum):
    def kept(self, velocity: Array) -> Array:
        return velocity.astype("float32").astype("float64")


class Forgotten(Momentum):
    def kept(self, velocity: Array) -> Array:
        return 0 * velocity

    def taken(self, grad: Array, velocity: Array) -> Array:
        return grad


class Twice(Momentum):
    def taken(self, grad: Array, velocity: Array) -> Array:
        return 2 * velocity


class RateOfEachDevice(NumpyChapter):
    """The rate falls once for each device: it is that of a later step."""

    def train_batch(self, X: Array, y: Array, lr: float) -> float:
        return super().train_batch(X, y, 0.05 - self.shards * (0.05 - lr))


class LeastRate(NumpyChapter):
    """The rate never falls below one that is larger than the last."""

    def train_batch(self, X: Array, y: Array, lr: float) -> float:
        return super().train_batch(X, y, max(lr, 0.02))


class Smoothed(NumpyChapter):
    def step(self, X: Array, y: Array) -> Step:
        net = numpy_nets.LeNet(self.replicas[0])
        loss, d = numpy_nets.cross_entropy(net.forward(X), y)
        net.backward(d + 1e-4 / len(y) * (np.eye(10)[y] - 0.1))
        return Step(loss, loss, net.gradients, {}, {})


@pytest.mark.parametrize(
    ("bug", "text"),
    [
        (Momentum, ""),
        (Nesterov, "fits: in step 1, the update is that of Nesterov's momentum: 1 + 0.9 times "),
        (Rounded, "fits: in step 1, the momentum is rounded to float32"),
        (Forgotten, ""),
        (Twice, "fits: in step 1, the update is the right one × 2"),
        (RateOfEachDevice, "fits: in step 2, the update is the right one at the rate of step 3"),
        (LeastRate, "fits: in step 4, the update is the right one × 1.6"),
        (Smoothed, ""),
    ],
)
def test_a_hint_rests_on_the_whole_run(tmp_path: Path, bug: Any, text: str) -> None:
    settings: dict[str, Any] = {"lr_decay": "linear"}
    if issubclass(bug, Momentum):
        settings = {"chapter": "strategies", "strategy": "data"}
    if bug is Smoothed:
        settings = {"init_weights": ""}
    devices = 2 if bug is RateOfEachDevice else 1
    run = read_run(make(tmp_path, "jax", bug(), devices, **settings))
    recomputed = recompute(run)
    assert recomputed
    found = hint(run, recomputed)
    assert found.startswith(text)
    assert bool(found) == bool(text)
