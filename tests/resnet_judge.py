"""An independent ResNet-18 in NumPy: forward, backward and SGD, in float64 unless told otherwise.

It shares no code with the backends. Every layer returns its output and a function that takes the
output's gradient, notes the gradients of the layer's weights, and returns the input's gradient.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Weights = dict[str, Array]
Back = Callable[[Array], Array]
Layer = tuple[Array, Back]
Bounds = Sequence[tuple[int, int]]

MOMENTUM, EPSILON = 0.1, 1e-5


def composed(backs: Sequence[Back]) -> Back:
    """The backward pass of layers that follow each other."""
    return lambda d: reduce(lambda d, back: back(d), reversed(backs), d)


class ResNet18:
    """One pass over a minibatch, in training mode; shards are normalized each for itself.

    After `backward`, `gradients` holds those of the mean loss; `statistics` holds the running
    statistics after this minibatch, as the first shard sees it.
    """

    def __init__(self, weights: Weights, shards: Bounds) -> None:
        self.weights = weights
        self.shards = [(a, b) for a, b in shards if b > a]
        self.gradients: Weights = {}
        self.statistics: Weights = {}

    def forward(self, X: Array) -> Layer:
        out, back_stem = self.chain(X, ("conv", "conv1", 1, 1), ("norm", "bn1"), ("relu",))
        backs = [back_stem]
        for stage in (1, 2, 3, 4):
            for block in (1, 2):
                stride = 2 if stage > 1 and block == 1 else 1
                out, back = self.residual(f"stage{stage}.block{block}", out, stride)
                backs.append(back)
        n, _, h, w = out.shape
        pooled = out.mean(axis=(2, 3))
        logits = pooled @ self.weights["fc.weight"] + self.weights["fc.bias"]

        def backward(d: Array) -> Array:
            self.gradients["fc.weight"], self.gradients["fc.bias"] = pooled.T @ d, d.sum(axis=0)
            d_pooled = d @ self.weights["fc.weight"].T / (h * w)
            spread = np.broadcast_to(d_pooled[:, :, None, None], (n, d_pooled.shape[1], h, w))
            return composed(backs)(spread)

        return logits, backward

    def residual(self, name: str, X: Array, stride: int) -> Layer:
        out, back_out = self.chain(
            X,
            ("conv", f"{name}.conv1", stride, 1),
            ("norm", f"{name}.bn1"),
            ("relu",),
            ("conv", f"{name}.conv2", 1, 1),
            ("norm", f"{name}.bn2"),
        )
        shortcut, back_shortcut = X, None
        if f"{name}.conv3.weight" in self.weights:
            shortcut, back_shortcut = self.conv(X, f"{name}.conv3", stride, 0)
        out, back_relu = self.relu(out + shortcut)

        def backward(d: Array) -> Array:
            d = back_relu(d)
            return back_out(d) + (back_shortcut(d) if back_shortcut else d)

        return out, backward

    def chain(self, X: Array, *layers: tuple[Any, ...]) -> Layer:
        backs = []
        for kind, *arguments in layers:
            X, back = getattr(self, kind)(X, *arguments)
            backs.append(back)
        return X, composed(backs)

    def conv(self, X: Array, name: str, stride: int, padding: int) -> Layer:
        weight = self.weights[f"{name}.weight"]
        edge = (padding, padding)
        padded = np.pad(X, ((0, 0), (0, 0), edge, edge))
        size = weight.shape[2]
        last = [side - size + 1 for side in padded.shape[2:]]
        windows = {
            (i, j): (..., slice(i, i + last[0], stride), slice(j, j + last[1], stride))
            for i in range(size)
            for j in range(size)
        }
        out = sum(
            np.einsum("nihw,oi->nohw", padded[window], weight[:, :, i, j], optimize=True)
            for (i, j), window in windows.items()
        )

        def backward(d: Array) -> Array:
            d_padded, d_weight = np.zeros_like(padded), np.zeros_like(weight)
            for (i, j), window in windows.items():
                d_weight[:, :, i, j] = np.einsum("nohw,nihw->oi", d, padded[window], optimize=True)
                d_padded[window] += np.einsum("nohw,oi->nihw", d, weight[:, :, i, j], optimize=True)
            self.gradients[f"{name}.weight"] = d_weight
            self.gradients[f"{name}.bias"] = d.sum(axis=(0, 2, 3))
            inner = slice(padding, -padding or None)
            return d_padded[:, :, inner, inner]

        return out + self.weights[f"{name}.bias"][:, None, None], backward

    def norm(self, X: Array, name: str) -> Layer:
        scale = self.weights[f"{name}.weight"][:, None, None]
        shift = self.weights[f"{name}.bias"][:, None, None]
        normal, deviations = np.empty_like(X), []
        for index, (a, b) in enumerate(self.shards):
            mean, var = X[a:b].mean(axis=(0, 2, 3)), X[a:b].var(axis=(0, 2, 3))
            deviations.append(np.sqrt(var + EPSILON)[:, None, None])
            normal[a:b] = (X[a:b] - mean[:, None, None]) / deviations[-1]
            if index == 0:
                self.remember(f"{name}.running_mean", mean)
                self.remember(f"{name}.running_var", var)

        def backward(d: Array) -> Array:
            self.gradients[f"{name}.weight"] = (d * normal).sum(axis=(0, 2, 3))
            self.gradients[f"{name}.bias"] = d.sum(axis=(0, 2, 3))
            d_normal, d_in = d * scale, np.empty_like(X)
            for (a, b), deviation in zip(self.shards, deviations, strict=True):
                part, unit = d_normal[a:b], normal[a:b]
                along = (part * unit).mean(axis=(0, 2, 3))[:, None, None]
                centred = part - part.mean(axis=(0, 2, 3))[:, None, None]
                d_in[a:b] = (centred - unit * along) / deviation
            return d_in

        return normal * scale + shift, backward

    def remember(self, name: str, value: Array) -> None:
        self.statistics[name] = (1 - MOMENTUM) * self.weights[name] + MOMENTUM * value

    def relu(self, X: Array) -> Layer:
        return np.maximum(X, 0), lambda d: d * (X > 0)


class Evaluation(ResNet18):
    """A pass in evaluation mode: normalized by the running statistics."""

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights, [])

    def norm(self, X: Array, name: str) -> Layer:
        part = {
            key: self.weights[f"{name}.{key}"][:, None, None]
            for key in ("weight", "bias", "running_mean", "running_var")
        }
        normal = (X - part["running_mean"]) / np.sqrt(part["running_var"] + EPSILON)
        return normal * part["weight"] + part["bias"], lambda d: d


def logits(X: Array, weights: Weights) -> Array:
    """The logits (n, 10) in evaluation mode."""
    return Evaluation(weights).forward(X)[0]


def loss_and_gradients(
    X: Array, y: Array, weights: Weights, shards: Bounds
) -> tuple[float, Weights, Weights]:
    """The mean cross-entropy, its gradient, and the running statistics after the minibatch."""
    n, net = len(X), ResNet18(weights, shards)
    found, backward = net.forward(X)
    shifted = found - found.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    d = np.exp(log_p)
    d[np.arange(n), y] -= 1
    backward(d / n)
    return float(-log_p[np.arange(n), y].mean()), net.gradients, net.statistics


def sgd(
    weights: Weights,
    minibatches: Sequence[tuple[Array, Array]],
    rates: Iterable[float],
    split: Callable[[int], Bounds],
) -> tuple[list[float], Weights]:
    """The loss of every step, and the weights and running statistics after the last.

    `split` gives the bounds of the shards of a minibatch of n examples that are normalized each
    for itself: one shard means synchronized statistics.
    """
    losses, trained = [], dict(weights)
    for (X, y), lr in zip(minibatches, rates, strict=False):
        loss, gradients, statistics = loss_and_gradients(X, y, trained, split(len(X)))
        losses.append(loss)
        trained |= {name: trained[name] - lr * values for name, values in gradients.items()}
        trained |= statistics
    return losses, trained
