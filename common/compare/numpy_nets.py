"""The nets in NumPy, and a step of training: the gradient, and what its rounding is relative to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

import numpy as np

from common.base.arrays import Array, Weights
from common.compare.distances import largest, wide
from common.compare.numpy_gpt import GPT, MoE
from common.compare.numpy_pass import MOMENTUM, Bounds, Pass, Unit
from common.models.nets import BLOCKS, STAGES

DOUBT: Final = 4.0
"""Times as far from 0 as rounding moves its layer's inputs: a unit in doubt, at most."""

MOST_UNITS: Final = 32
AT_ONCE: Final = 20
"""Images whose logits are computed at once."""


class LeNet(Pass):
    """The book's LeNet; with as many hidden layers more as there are weights of."""

    def forward(self, X: Array) -> Array:
        for name in ("conv1", "conv2"):
            X = self.pool(self.relu(self.conv(X, name)))
        X = self.flatten(X)
        hidden = [k for k in self.weights if k.startswith("hidden") and k.endswith(".weight")]
        for name in ("fc1", *(k.removesuffix(".weight") for k in hidden)):
            X = self.relu(self.dense(X, name))
        return self.dense(X, "fc2")


class ResNet18(Pass):
    """The book's ResNet-18, of any width."""

    def forward(self, X: Array) -> Array:
        X = self.relu(self.norm(self.conv(X, "conv1", 1, 1), "bn1"))
        for stage, block in product(STAGES, BLOCKS):
            stride = 2 if stage > 1 and block == 1 else 1
            X = self.block(X, f"stage{stage}.block{block}", stride)
        return self.dense(self.mean_pool(X), "fc")

    def block(self, X: Array, name: str, stride: int) -> Array:
        def branch(X: Array) -> Array:
            X = self.relu(self.norm(self.conv(X, f"{name}.conv1", stride, 1), f"{name}.bn1"))
            return self.norm(self.conv(X, f"{name}.conv2", 1, 1), f"{name}.bn2")

        def shortcut(X: Array) -> Array:
            widened = f"{name}.conv3.weight" in self.weights
            return self.conv(X, f"{name}.conv3", stride) if widened else X

        return self.relu(self.residual(X, branch, shortcut))


NETS: Final[Mapping[str, type[Pass]]] = {
    "scratch": LeNet,
    "concise": ResNet18,
    "strategies": LeNet,
    "gpt": GPT,
    "moe": MoE,
}
"""By `Config.net`."""

Net = str | Callable[..., Pass]
"""One of `NETS`, or what makes a pass from weights and shards."""


def net_of(net: Net) -> Callable[..., Pass]:
    return NETS[net] if isinstance(net, str) else net


@dataclass(frozen=True)
class Step:
    """The mean loss, its gradient, running statistics, and what their rounding is relative to.

    A gradient is a sum over the minibatch, in a convolution or a norm of as many `terms`. The
    `statistics` are the first shard's, which moved towards the first of those `seen`.
    """

    loss: float
    loss_scale: float
    gradients: Weights
    statistics: Weights
    scales: dict[str, float]
    terms: dict[str, int] = field(default_factory=dict)
    seen: Mapping[str, Sequence[Array]] = field(default_factory=dict)


def logits(net: Net, X: Array, weights: Mapping[str, Array]) -> Array:
    """The logits of examples in evaluation mode, in float64."""
    exact = doubled(weights)
    parts = [X[i : i + AT_ONCE].astype(np.float64) for i in range(0, len(X), AT_ONCE)]
    return np.concatenate([net_of(net)(exact).forward(part) for part in parts])


def step(net: Net, X: Array, y: Array, weights: Mapping[str, Array], shards: Bounds) -> Step:
    run = net_of(net)(doubled(weights), shards)
    output = run.forward(X.astype(np.float64))
    loss, d = cross_entropy(output, y)
    loss += run.auxiliary
    run.backward(d)
    loss_scale = max(loss, largest(output))
    scales = {k: run.added.get(k) or largest(grad) or 1.0 for k, grad in run.gradients.items()}
    statistics = {name: moved(run.weights[name], seen[0]) for name, seen in run.seen.items()}
    return Step(loss, loss_scale, run.gradients, statistics, scales, run.terms, run.seen)


def moved(running: Array, seen: Array) -> Array:
    """Running statistics after a minibatch."""
    return (1 - MOMENTUM) * running + MOMENTUM * seen


def doubled(weights: Mapping[str, Array]) -> Weights:
    return {name: wide(values) for name, values in weights.items()}


def cross_entropy(logits: Array, y: Array) -> tuple[float, Array]:
    """The mean loss of logits (..., classes) and labels (...), and its gradient for the logits.

    The mean is over the labels that there are; -1 is none.
    """
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    counted = np.nonzero(y >= 0)
    here = (*counted, y[counted])
    d = np.exp(log_p) * (y >= 0)[..., None]
    d[here] -= 1
    count = len(counted[0])
    return float(-log_p[here].sum() / count), d / count


class Doubt:
    """The ReLU `units` of a step whose sign rounding may decide, nearest to zero first.

    Last are those that float32, too, computes exactly: over the blank part of an image, thousands
    have the bias.
    """

    def __init__(
        self, net: Net, X: Array, y: Array, weights: Mapping[str, Array], shards: Bounds
    ) -> None:
        rounded = net_of(net)(weights, shards)
        rounded.forward(X)
        self.exact = net_of(net)(doubled(weights), shards)
        _, self.d = cross_entropy(self.exact.forward(X.astype(np.float64)), y)
        self.exact.backward(self.d)
        self.right = self.exact.gradients
        units: list[tuple[bool, float, Unit]] = []
        pairs = zip(self.exact.relu_inputs, rounded.relu_inputs, strict=True)
        for layer, (right, off) in enumerate(pairs):
            most = DOUBT * np.abs(right - off).max()
            # Over a blank part of an image all agree on 0.
            near = (np.abs(right) <= most) & ((right != 0) | (off != 0))
            for index in map(tuple, np.argwhere(near)):
                same = right[index] == off[index]
                units.append((same, abs(right[index]) / most, (layer, index)))
        self.units = [unit for _, _, unit in sorted(units)[:MOST_UNITS]]

    def gain(self, units: Iterable[Unit]) -> Weights:
        """What the gradient of the step gains if rounding decides these units otherwise.

        Of several, one also changes what the backward pass brings to another.
        """
        self.exact.gradients, self.exact.flipped = {}, {*units}
        self.exact.backward(self.d)
        return {name: self.exact.gradients[name] - values for name, values in self.right.items()}
