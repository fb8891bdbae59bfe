"""The book's ResNet-18 in Flax NNX, as one device's shard of a minibatch sees it."""

from collections.abc import Sequence
from functools import partial

import jax
from flax import nnx
from jax import Array as Tensor
from jax import numpy as jnp

from common.base.arrays import Array
from common.models.nets import BLOCKS, EPSILON, MOMENTUM, STAGES
from frameworks.jax.convolution import conv2d

AXIS = "device"
"""The axis of the mesh, along which a minibatch is divided into shards."""

FEW = 4
"""Images of which XLA adds up the pixels one by one, with up to 13 times the rounding: so rows are
added up first."""

Conv = partial(nnx.Conv, conv_general_dilated=conv2d)
"""Flax's layer; its gradients are fast on CPUs, too."""


class BatchNorm(nnx.Module):
    """Batch normalization over a shard or, given an axis, over all the shards along it.

    `nnx.BatchNorm` has a mask and an axis too, but takes every shard to be of the same size.
    """

    def __init__(self, channels: int, axis: str | None) -> None:
        self.weight = nnx.Param(jnp.ones(channels))
        self.bias = nnx.Param(jnp.zeros(channels))
        self.running_mean = nnx.BatchStat(jnp.zeros(channels))
        self.running_var = nnx.BatchStat(jnp.ones(channels))
        self.axis = axis

    def __call__(self, X: Tensor, mask: Tensor | None) -> Tensor:
        """Normalizes `X` (n, rows, columns, channels), by running statistics without a mask.

        `mask` (n,) is 1 for an example and 0 for padding, which becomes 0 and counts nowhere.
        """
        if mask is None:
            centred, var = X - self.running_mean[...], self.running_var[...]
        else:
            counts = mask[:, None, None, None]
            n = self.total(counts) * (X.shape[1] * X.shape[2])
            mean = self.total(X * counts) / jnp.maximum(n, 1)  # an empty shard has n = 0
            centred = (X - mean) * counts
            var = self.total(centred**2) / jnp.maximum(n, 1)
            self.remember(mean, var, MOMENTUM * jnp.minimum(n, 1))
        scale = self.weight[...] * jax.lax.rsqrt(var + EPSILON)
        return centred * scale + self.bias[...]

    def total(self, values: Tensor) -> Tensor:
        """(n, rows, columns, channels) to the sums (channels,) over all that is normalized."""
        if len(values) < FEW:
            values = jax.lax.optimization_barrier(values.sum(axis=1, keepdims=True))
        sums = values.sum(axis=(0, 1, 2))
        return sums if self.axis is None else jax.lax.psum(sums, self.axis)

    def remember(self, mean: Tensor, var: Tensor, momentum: Tensor) -> None:
        """Moves the running statistics towards those of a minibatch, all (channels,)."""
        self.running_mean[...] += momentum * (mean - self.running_mean[...])
        self.running_var[...] += momentum * (var - self.running_var[...])


class Residual(nnx.Module):
    """Two convolutions and a shortcut around them."""

    def __init__(self, channels: int, out: int, axis: str | None, rngs: nnx.Rngs) -> None:
        stride = 1 if channels == out else 2
        # Padding "SAME" would be (0, 1) where the stride is 2.
        self.conv1 = Conv(channels, out, (3, 3), strides=stride, padding=1, rngs=rngs)
        self.bn1 = BatchNorm(out, axis)
        self.conv2 = Conv(out, out, (3, 3), padding=1, rngs=rngs)
        self.bn2 = BatchNorm(out, axis)
        if stride > 1:
            self.conv3 = Conv(channels, out, (1, 1), strides=stride, padding=0, rngs=rngs)

    def __call__(self, X: Tensor, mask: Tensor | None) -> Tensor:
        """(n, rows, columns, channels) to (n, rows / stride, columns / stride, out)."""
        Y = nnx.relu(self.bn1(self.conv1(X), mask))
        Y = self.bn2(self.conv2(Y), mask)
        shortcut = self.conv3(X) if hasattr(self, "conv3") else X
        return nnx.relu(Y + shortcut)


class ResNet18(nnx.Module):
    """A 3 x 3 stem without pooling, four stages of two residual blocks, a dense layer."""

    def __init__(self, width: int, axis: str | None, rngs: nnx.Rngs) -> None:
        self.conv1 = Conv(1, width, (3, 3), padding=1, rngs=rngs)
        self.bn1 = BatchNorm(width, axis)
        channels = width
        for stage in STAGES:
            blocks = nnx.Dict[Residual]()
            for block in BLOCKS:
                out = width * 2 ** (stage - 1)
                blocks[f"block{block}"] = Residual(channels, out, axis, rngs)
                channels = out
            setattr(self, f"stage{stage}", blocks)
        self.fc = nnx.Linear(channels, 10, rngs=rngs)

    def __call__(self, X: Tensor, mask: Tensor | None = None) -> Tensor:
        """The logits (n, 10) of images `X` (n, 1, 28, 28); without a mask, it evaluates."""
        Y = nnx.relu(self.bn1(self.conv1(X.transpose(0, 2, 3, 1)), mask))
        for stage in STAGES:
            for block in BLOCKS:
                Y = getattr(self, f"stage{stage}")[f"block{block}"](Y, mask)
        return self.fc(Y.mean(axis=(1, 2)))


def resnet18(width: int, batch_norm: str) -> ResNet18:
    """The book's ResNet-18, scaled to `width` channels in the first stage (the book's: 64)."""
    return ResNet18(width, AXIS if batch_norm == "sync" else None, nnx.Rngs(0))


def canonical(path: Sequence[object]) -> str:
    """The canonical name of what lies at this path in the net."""
    return ".".join(map(str, path)).replace("kernel", "weight")


def from_canonical(values: Array) -> Array:
    """A tensor as Flax has it: the kernels of convolutions are (rows, columns, in, out) there."""
    return values.transpose(2, 3, 1, 0) if values.ndim == 4 else values


def to_canonical(values: Array) -> Array:
    """The inverse of `from_canonical`."""
    return values.transpose(3, 2, 0, 1) if values.ndim == 4 else values
