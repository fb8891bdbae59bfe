"""LeNet and ResNet-18 in NumPy: what a step must compute, whatever framework takes it.

In float64 it is the exact answer, but for rounding. It is slow: a few small minibatches will do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from common.base.arrays import Array, Weights
from common.compare.numpy_layers import Bounds, Layer, Pass, Unit, composed
from common.models.nets import BLOCKS, STAGES

DOUBT: Final = 4.0
"""A unit is in doubt if its input is no farther from 0 than so many times what rounding does to
its layer's inputs here: other kernels add up in another order, and round otherwise."""

MOST_UNITS: Final = 32
"""Units in doubt that are looked at, the nearest to zero."""

AT_ONCE: Final = 20
"""Images whose logits are computed at once: it bounds memory."""


class LeNet(Pass):
    """The book's LeNet."""

    def forward(self, X: Array) -> Layer:
        """The logits (n, 10) of images, and the way back from their gradient."""
        return self.chain(
            X,
            ("conv", "conv1"),
            ("relu",),
            ("pool",),
            ("conv", "conv2"),
            ("relu",),
            ("pool",),
            ("flatten",),
            ("dense", "fc1"),
            ("relu",),
            ("dense", "fc2"),
        )


class ResNet18(Pass):
    """The book's ResNet-18, of any width."""

    def forward(self, X: Array) -> Layer:
        """The logits (n, 10) of images, and the way back from their gradient."""
        out, back = self.chain(X, ("conv", "conv1", 1, 1), ("norm", "bn1"), ("relu",))
        backs = [back]
        for stage in STAGES:
            for block in BLOCKS:
                stride = 2 if stage > 1 and block == 1 else 1
                out, back = self.residual(out, f"stage{stage}.block{block}", stride)
                backs.append(back)
        out, back = self.chain(out, ("mean_pool",), ("dense", "fc"))
        return out, composed([*backs, back])

    def residual(self, X: Array, name: str, stride: int) -> Layer:
        """Two convolutions and a shortcut around them."""
        out, back_out = self.chain(
            X,
            ("conv", f"{name}.conv1", stride, 1),
            ("norm", f"{name}.bn1"),
            ("relu",),
            ("conv", f"{name}.conv2", 1, 1),
            ("norm", f"{name}.bn2"),
        )
        widened = f"{name}.conv3.weight" in self.weights
        shortcut, back_shortcut = self.conv(X, f"{name}.conv3", stride) if widened else (X, None)
        out, back_relu = self.relu(out + shortcut)

        def backward(d: Array) -> Array:
            d = back_relu(d)
            return back_out(d) + (back_shortcut(d) if back_shortcut else d)

        return out, backward


NETS: Final[dict[str, type[LeNet] | type[ResNet18]]] = {"scratch": LeNet, "concise": ResNet18}
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
    return np.concatenate([NETS[chapter](exact).forward(part)[0] for part in parts])


def step(chapter: str, X: Array, y: Array, weights: Mapping[str, Array], shards: Bounds) -> Step:
    """One step from `weights`, in float64."""
    net = NETS[chapter](doubled(weights), shards)
    found, back = net.forward(X.astype(np.float64))
    loss, d = cross_entropy(found, y)
    back(d)
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
) -> list[Weights]:
    """For each unit in doubt, what the gradient of a step gains if rounding decides otherwise."""
    exact, rounded = NETS[chapter](doubled(weights), shards), NETS[chapter](weights, shards)
    rounded.forward(X)
    found, back = exact.forward(X.astype(np.float64))
    _, d = cross_entropy(found, y)
    back(d)
    right, gained = exact.gradients, []
    for unit in units_in_doubt(exact, rounded):
        exact.gradients, exact.flipped = {}, {unit}
        back(d)
        gained.append({name: exact.gradients[name] - values for name, values in right.items()})
    return gained
