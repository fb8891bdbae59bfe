"""A pass through a net in NumPy, forward and backward, by formulas that are derived by hand.

They share no code with any framework. In float64 a step is exact, except for rounding.

A layer returns its output and appends its backward pass to a tape: a function from the gradient of
the output to that of the input, which stores those of weights. Images are (n, channels, rows,
columns).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from common.base.arrays import Array, Weights
from common.compare.distances import largest

Layers = Callable[[Array], Array]
"""From an input to the output, or from the gradient of the output to that of the input."""

Bounds = Sequence[tuple[int, int]]
Unit = tuple[int, tuple[int, ...]]
"""A ReLU unit: which of the net's ReLU layers it is in, and its index there."""

EPSILON: Final = 1e-5
MOMENTUM: Final = 0.1
"""Of batch normalization, as PyTorch has them by default; runs take theirs from elsewhere."""

SUMS: Final = 0.25
"""If a gradient nearly cancels: the part of its sum of magnitudes that replaces its largest entry.

Rounding in float32 is at most 1.3e-5 of that sum in all suites, and up to 6.1e-5 of the largest
entry of gradients that do not cancel. So one limit holds for both.
"""


class Pass:
    """One pass over a minibatch, in the dtype of `weights`.

    Each of `shards` is normalized by itself; without any, running statistics are used.
    The backward pass stores `gradients` of the loss. The rounding error of sums that nearly cancel
    is relative to what was summed: `added` has what takes the place of the largest entry, `terms`
    the number of terms. `auxiliary` is a part of the loss besides the cross-entropy.
    `seen` has the mean and the variance of each shard, by the names of running statistics.
    Backward, `flipped` units that were shut are open, and vice versa; `added` stays as it is.
    """

    def __init__(self, weights: Mapping[str, Array], shards: Bounds = ()) -> None:
        self.weights, self.tape = weights, list[Layers]()
        self.shards = [(a, b) for a, b in shards if b > a]  # empty shards count nowhere
        self.gradients: Weights = {}
        self.added: dict[str, float] = {}
        self.terms: dict[str, int] = {}
        self.seen: dict[str, list[Array]] = {}
        self.relu_inputs: list[Array] = []
        self.flipped: set[Unit] = set()
        self.auxiliary = 0.0

    def forward(self, X: Array) -> Array:
        raise NotImplementedError

    def backward(self, d: Array) -> Array:
        return through(self.tape, d)

    def residual(self, X: Array, branch: Layers, shortcut: Layers = lambda X: X) -> Array:
        """The sum of the outputs of two ways through layers."""
        tape, outs, paths = self.tape, list[Array](), list[list[Layers]]()
        for layers in (branch, shortcut):
            self.tape = []
            outs.append(layers(X))
            paths.append(self.tape)
        self.tape = [*tape, lambda d: through(paths[0], d) + through(paths[1], d)]
        return outs[0] + outs[1]

    def conv(self, X: Array, name: str, stride: int = 1, padding: int = 0) -> Array:
        weight = self.weights[f"{name}.weight"]
        matrix = weight.reshape(len(weight), -1)
        first = not self.relu_inputs
        # With images last, patches are copied in long runs.
        around = (padding, padding)
        padded = np.pad(X.transpose(1, 2, 3, 0), [(0, 0), around, around, (0, 0)])
        positions = [(side - weight.shape[2]) // stride + 1 for side in padded.shape[1:3]]
        shape = (len(weight), *positions, len(X))
        out = (matrix @ patches(padded, weight.shape[2], stride)).reshape(shape)

        def backward(d: Array) -> Array:
            d = d.transpose(1, 2, 3, 0).reshape(len(weight), -1)
            seen = patches(padded, weight.shape[2], stride)
            d_weight = (d @ seen.T).reshape(weight.shape)
            self.gradients[f"{name}.weight"] = d_weight
            self.gradients[f"{name}.bias"] = d.sum(axis=1)
            if not self.flipped:
                # A scale needs no more than single precision, which takes half the time.
                sizes = [np.abs(values.astype(np.float32)) for values in (d, seen)]
                most = SUMS * float((sizes[0] @ sizes[1].T).max())
                self.added[f"{name}.weight"] = max(most, largest(d_weight))
                self.added[f"{name}.bias"] = largest_sum(d, axis=1)
                self.terms |= dict.fromkeys((f"{name}.weight", f"{name}.bias"), d.shape[1])
            if first:  # the gradient of images is not needed
                return d
            parts = (matrix.T @ d).reshape(len(padded), -1, *shape[1:])
            d_padded = np.zeros_like(padded)
            for i, window in enumerate(windows(padded.shape, weight.shape[2], stride)):
                d_padded[window] += parts[:, i]
            inner = slice(padding, -padding or None)
            return d_padded[:, inner, inner].transpose(3, 0, 1, 2)

        self.tape.append(backward)
        return out.transpose(3, 0, 1, 2) + self.weights[f"{name}.bias"][:, None, None]

    def norm(self, X: Array, name: str) -> Array:
        """Batch normalization; without shards, by the running statistics."""
        axes = 0, 2, 3
        scale = self.weights[f"{name}.weight"][:, None, None]
        shift = self.weights[f"{name}.bias"][:, None, None]
        old = {key: self.weights[f"{name}.running_{key}"] for key in ("mean", "var")}
        if not self.shards:
            deviation = np.sqrt(old["var"] + EPSILON)[:, None, None]
            return (X - old["mean"][:, None, None]) / deviation * scale + shift
        normal = np.empty_like(X)
        deviations = []
        for a, b in self.shards:
            new = {"mean": X[a:b].mean(axis=axes), "var": X[a:b].var(axis=axes)}
            deviations.append(np.sqrt(new["var"] + EPSILON)[:, None, None])
            normal[a:b] = (X[a:b] - new["mean"][:, None, None]) / deviations[-1]
            for key, value in new.items():
                self.seen.setdefault(f"{name}.running_{key}", []).append(value)

        def backward(d: Array) -> Array:
            for kind, terms in (("weight", d * normal), ("bias", d)):
                self.gradients[f"{name}.{kind}"] = terms.sum(axis=axes)
                if not self.flipped:
                    self.added[f"{name}.{kind}"] = largest_sum(terms, axis=axes)
                    self.terms[f"{name}.{kind}"] = d[:, 0].size
            d_normal = d * scale
            d_in = np.empty_like(X)
            for (a, b), deviation in zip(self.shards, deviations, strict=True):
                part, unit = d_normal[a:b], normal[a:b]
                along = (part * unit).mean(axis=axes)[:, None, None]
                centred = part - part.mean(axis=axes)[:, None, None]
                d_in[a:b] = (centred - unit * along) / deviation
            return d_in

        self.tape.append(backward)
        return normal * scale + shift

    def relu(self, X: Array) -> Array:
        layer = len(self.relu_inputs)
        self.relu_inputs.append(X)

        def backward(d: Array) -> Array:
            opened = X > 0
            for index in (index for at, index in self.flipped if at == layer):
                opened[index] = not opened[index]
            return d * opened

        self.tape.append(backward)
        return np.maximum(X, 0)

    def pool(self, X: Array) -> Array:
        """Means of 2 x 2 windows; an odd edge is dropped."""
        h = X.shape[2] // 2 * 2
        w = X.shape[3] // 2 * 2

        def backward(d: Array) -> Array:
            d_in = np.zeros_like(X)
            for i, j in product((0, 1), repeat=2):
                d_in[:, :, i:h:2, j:w:2] = d / 4
            return d_in

        self.tape.append(backward)
        corners = [X[:, :, i:h:2, j:w:2] for i, j in product((0, 1), repeat=2)]
        mean: Array = sum(corners[1:], corners[0]) / 4
        return mean

    def mean_pool(self, X: Array) -> Array:
        pixels = X.shape[2] * X.shape[3]
        self.tape.append(lambda d: np.broadcast_to(d[:, :, None, None] / pixels, X.shape))
        mean: Array = X.mean(axis=(2, 3))
        return mean

    def flatten(self, X: Array) -> Array:
        self.tape.append(lambda d: d.reshape(X.shape))
        return X.reshape(len(X), -1)

    def dense(self, X: Array, name: str) -> Array:
        """The product of the last axis with a matrix, plus a bias if there is one."""
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")

        def backward(d: Array) -> Array:
            rows, d_rows = (values.reshape(-1, values.shape[-1]) for values in (X, d))
            self.gradients[f"{name}.weight"] = rows.T @ d_rows
            if bias is not None:
                self.gradients[f"{name}.bias"] = d_rows.sum(axis=0)
            return d @ weight.T

        self.tape.append(backward)
        return X @ weight if bias is None else X @ weight + bias


def through(tape: Sequence[Layers], d: Array) -> Array:
    """The gradient of a layer's input, from that of a later layer's output."""
    for back in reversed(tape):
        d = back(d)
    return d


def largest_sum(terms: Array, axis: int | tuple[int, ...]) -> float:
    return SUMS * float(np.abs(terms).sum(axis=axis).max())


def windows(shape: tuple[int, ...], size: int, stride: int) -> Iterator[tuple[Any, ...]]:
    """Where each entry of a window lies in images (channels, rows, columns, n)."""
    last = [side - size + 1 for side in shape[1:3]]
    for i, j in product(range(size), repeat=2):
        yield slice(None), slice(i, i + last[0], stride), slice(j, j + last[1], stride)


def patches(padded: Array, size: int, stride: int) -> Array:
    """The windows of images, each a column."""
    cut = [padded[window] for window in windows(padded.shape, size, stride)]
    return np.stack(cut, axis=1).reshape(len(padded) * size * size, -1)
