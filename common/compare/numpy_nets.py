"""Both nets in NumPy, and a step of each: what every framework must compute.

In float64 it is the exact answer, except for rounding. It is slow: a few small minibatches will do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from common.base.arrays import Array, Weights
from common.compare.numpy_layers import Bounds, Pass, Unit, through
from common.models.nets import BLOCKS, STAGES

DOUBT: Final = 4.0
"""A unit is in doubt if its input is near 0: at most this many times as far from it as rounding
moves its layer's inputs here. Other kernels add up in another order, and round differently."""

MOST_UNITS: Final = 32
"""Units in doubt that are looked at, the nearest to zero."""

AT_ONCE: Final = 20
"""Images whose logits are computed at once: it bounds memory."""


class LeNet(Pass):
    """The book's LeNet; with as many hidden layers more as there are weights of."""

    def forward(self, X: Array) -> Array:
        """The logits (n, 10) of images."""
        for name in ("conv1", "conv2"):
            X = self.pool(self.relu(self.conv(X, name)))
        X = self.flatten(X)
        hidden = [k for k in self.weights if k.startswith("hidden") and k.endswith(".weight")]
        for name in ("fc1.weight", *hidden):
            X = self.relu(self.dense(X, name.removesuffix(".weight")))
        return self.dense(X, "fc2")


class ResNet18(Pass):
    """The book's ResNet-18, of any width."""

    def forward(self, X: Array) -> Array:
        """The logits (n, 10) of images."""
        X = self.relu(self.norm(self.conv(X, "conv1", 1, 1), "bn1"))
        for stage, block in product(STAGES, BLOCKS):
            stride = 2 if stage > 1 and block == 1 else 1
            X = self.residual(X, f"stage{stage}.block{block}", stride)
        return self.dense(self.mean_pool(X), "fc")

    def residual(self, X: Array, name: str, stride: int) -> Array:
        """Two convolutions and a shortcut around them."""
        tape, self.tape = self.tape, []
        out = self.relu(self.norm(self.conv(X, f"{name}.conv1", stride, 1), f"{name}.bn1"))
        out = self.norm(self.conv(out, f"{name}.conv2", 1, 1), f"{name}.bn2")
        path, self.tape = self.tape, []
        widened = f"{name}.conv3.weight" in self.weights
        shortcut = self.conv(X, f"{name}.conv3", stride) if widened else X
        around = self.tape
        self.tape = [*tape, lambda d: through(path, d) + through(around, d)]
        return self.relu(out + shortcut)


NETS: Final = {"scratch": LeNet, "concise": ResNet18, "strategies": LeNet}
"""The net of each chapter."""


@dataclass(frozen=True)
class Step:
    """What one minibatch makes of some weights: the mean loss, its gradient, running statistics.

    `added` is what rounding is relative to in gradients that nearly cancel: see `Pass`. Of the
    loss it is relative to `loss_scale`: a loss is a difference of numbers as large as logits.
    """

    loss: float
    loss_scale: float
    gradients: Weights
    statistics: Weights
    added: dict[str, float]


def logits(chapter: str, X: Array, weights: Mapping[str, Array]) -> Array:
    """The logits (n, 10) of images in evaluation mode, in float64."""
    exact = doubled(weights)
    parts = [X[i : i + AT_ONCE].astype(np.float64) for i in range(0, len(X), AT_ONCE)]
    return np.concatenate([NETS[chapter](exact).forward(part) for part in parts])


def step(chapter: str, X: Array, y: Array, weights: Mapping[str, Array], shards: Bounds) -> Step:
    """One step from `weights`, in float64."""
    net = NETS[chapter](doubled(weights), shards)
    found = net.forward(X.astype(np.float64))
    loss, d = cross_entropy(found, y)
    net.backward(d)
    scale = max(loss, float(np.abs(found).max()))
    return Step(loss, scale, net.gradients, net.statistics, net.added)


def doubled(weights: Mapping[str, Array]) -> Weights:
    """The same numbers in double precision."""
    return {name: values.astype(np.float64) for name, values in weights.items()}


def cross_entropy(logits: Array, y: Array) -> tuple[float, Array]:
    """The mean loss of logits (n, 10) and classes (n,), and its gradient for the logits."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    every = np.arange(len(y))
    d = np.exp(log_p)
    d[every, y] -= 1
    return float(-log_p[every, y].mean()), d / len(y)


def units_in_doubt(exact: Pass, rounded: Pass) -> list[Unit]:
    """The ReLU units whose inputs are so near to zero that rounding may decide on their sign.

    Nearest first. How much rounding does is measured, on two passes over the same minibatch, of
    which `rounded` was in single precision.
    """
    found: list[tuple[float, Unit]] = []
    pairs = zip(exact.relu_inputs, rounded.relu_inputs, strict=True)
    for layer, (right, off) in enumerate(pairs):
        most = DOUBT * np.abs(right - off).max()
        # Over a blank part of an image all agree on 0.
        near = (np.abs(right) <= most) & ((right != 0) | (off != 0))
        for index in map(tuple, np.argwhere(near)):
            found.append((abs(right[index]) / most, (layer, index)))
    return [unit for _, unit in sorted(found)[:MOST_UNITS]]


def flips(
    chapter: str, X: Array, y: Array, weights: Mapping[str, Array], shards: Bounds
) -> Iterator[Weights]:
    """For each unit in doubt, what the gradient of a step gains if rounding decides otherwise.

    Units nearest to zero come first. Each takes a way back, so the caller may stop early.
    """
    exact, rounded = NETS[chapter](doubled(weights), shards), NETS[chapter](weights, shards)
    rounded.forward(X)
    _, d = cross_entropy(exact.forward(X.astype(np.float64)), y)
    exact.backward(d)
    right = exact.gradients
    for unit in units_in_doubt(exact, rounded):
        exact.gradients, exact.flipped = {}, {unit}
        exact.backward(d)
        yield {name: exact.gradients[name] - values for name, values in right.items()}
