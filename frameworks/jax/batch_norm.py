"""Batch normalization in Flax NNX: over each device's shard, or over the global minibatch."""

import jax
from flax import nnx
from jax import Array as Tensor, numpy as jnp

from common.models.nets import EPSILON, MOMENTUM

FEW = 4
"""Images of which XLA adds up the pixels one by one, with up to 13 times the rounding: so rows are
added up first."""


class BatchNorm(nnx.Module):
    """Batch normalization over a shard or, given an axis, over all the shards along it, uneven."""

    def __init__(self, channels: int, axis: str | None) -> None:
        self.weight = nnx.Param(jnp.ones(channels))
        self.bias = nnx.Param(jnp.zeros(channels))
        self.running_mean = nnx.BatchStat(jnp.zeros(channels))
        self.running_var = nnx.BatchStat(jnp.ones(channels))
        self.axis = axis

    def __call__(self, X: Tensor, mask: Tensor | None) -> Tensor:
        """Normalizes `X` (n, rows, columns, channels); `mask` (n,) is 0 for padding.

        Without a mask it normalizes by the running statistics.
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
