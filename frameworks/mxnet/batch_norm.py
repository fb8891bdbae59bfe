"""Batch normalization in MXNet: over each device's shard, or over the global minibatch."""

from typing import Any

import numpy
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import HybridBlock

from common.models.nets import EPSILON, MOMENTUM, trainable
from frameworks.mxnet.layouts import Shards, Tensor, each
from frameworks.mxnet.reductions import means_over


def batch_norm(
    X: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, var: Tensor, *, eps: float = EPSILON
) -> Tensor:
    """`X` (n, channels, rows, columns) normalized by the given statistics, scaled and shifted."""
    options = {"fix_gamma": False, "use_global_stats": True}
    # cuDNN may refuse an eps as small as that of `affine`.
    return npx.batch_norm(X, scale, shift, mean, var, eps=eps, cudnn_off=True, **options)


def affine(X: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """`scale * X + shift` for each channel, as batch norm by mean 0 and variance 1.

    The gradient of a broadcast product or sum takes MXNet several times as long. Each image has
    channels of its own: batch norm adds up number by number, and fewer are ten times as exact.
    """
    planes = X.reshape(1, -1, *X.shape[2:])
    scale, shift = np.tile(scale, len(X)), np.tile(shift, len(X))
    Y = batch_norm(planes, scale, shift, np.zeros_like(shift), np.ones_like(shift), eps=0)
    return Y.reshape(X.shape)


class BatchNorm(HybridBlock):  # type: ignore[misc]
    """Batch normalization over a shard, in double precision; a backward pass moves statistics."""

    def __init__(self, channels: int, prefix: str) -> None:
        super().__init__(prefix=prefix)
        self.weight = self.params.get("weight", shape=(channels,))
        self.bias = self.params.get("bias", shape=(channels,))
        self.running_mean = self.params.get("running_mean", shape=(channels,), grad_req="null")
        self.running_var = self.params.get("running_var", shape=(channels,), grad_req="null")

    def cast(self, dtype: Any) -> None:
        """Sets the dtype of weights; the statistics stay in double precision."""
        super().cast(dtype)
        for statistic in (self.running_mean, self.running_var):
            statistic.cast("float64")

    def hybrid_forward(self, F: Any, shards: Shards, **params: Tensor) -> Shards:
        """Normalizes the one shard (n, channels, rows, columns) there is."""
        (X,) = shards
        scale, shift = (params[name].astype("float64") for name in ("weight", "bias"))
        statistics = params["running_mean"], params["running_var"]
        options = {"eps": EPSILON, "momentum": 1 - MOMENTUM, "fix_gamma": False}
        options["cudnn_off"] = True  # cuDNN keeps an unbiased running variance
        Y = F.npx.batch_norm(X.astype("float64"), scale, shift, *statistics, **options)
        return [Y.astype("float32")]


class SyncBatchNorm(BatchNorm):
    """Batch normalization over the global minibatch: Gluon's knows no NumPy interface."""

    def forward(self, shards: Shards) -> Shards:
        """Normalizes shards (n, channels, rows, columns), none of them empty."""
        if not autograd.is_training():
            return each(self.evaluate, shards)
        return self.normalize(shards)

    def evaluate(self, X: Tensor) -> Tensor:
        """Normalizes a shard by its device's running statistics."""
        params = self.weight, self.bias, self.running_mean, self.running_var
        return batch_norm(X, *(param.data(X.ctx).astype(X.dtype) for param in params))

    def means(self, shards: Shards) -> Shards:
        """The mean (channels,) over the global minibatch, on the device of each shard."""
        return means_over(shards)

    def normalize(self, shards: Shards) -> Shards:
        """Normalizes the shards of a minibatch, by the statistics over all of them."""
        means = self.means(shards)
        centred = [affine(X, np.ones_like(m), -m) for X, m in zip(shards, means, strict=True)]
        variances = self.means(each(np.square, centred))
        normal = []
        for X, mean, var in zip(centred, means, variances, strict=True):
            self.remember(mean, var)
            scale = self.weight.data(X.ctx) / np.sqrt(var + EPSILON)
            normal.append(affine(X, scale, self.bias.data(X.ctx)))
        return normal

    def remember(self, mean: Tensor, var: Tensor) -> None:
        """Moves the running statistics of a device towards those of a minibatch."""
        with autograd.pause():
            for param, seen in ((self.running_mean, mean), (self.running_var, var)):
                running = param.data(seen.ctx)
                running += MOMENTUM * (seen.astype(running.dtype) - running)


class ExactBatchNorm(SyncBatchNorm):
    """Batch normalization over each device's shard, which adds up as `SyncBatchNorm` does."""

    def normalize(self, shards: Shards) -> Shards:
        """Normalizes the shards of a minibatch, each by its own statistics."""
        return [Y for X in shards for Y in super(ExactBatchNorm, self).normalize([X])]


def batch_norm_of(mode: str, dtype: "numpy.dtype[Any]") -> type[BatchNorm]:
    """The layer that normalizes "per-device" or in "sync"."""
    if mode == "sync":
        return SyncBatchNorm
    return BatchNorm if dtype == numpy.float32 else ExactBatchNorm


def statistics(net: gluon.Block) -> list[gluon.Parameter]:
    """The running statistics of all layers, each on all devices."""
    return [param for name, param in net.collect_params().items() if not trainable(name)]


def share_statistics(net: gluon.Block) -> None:
    """Gives every device the running statistics of the first one."""
    first = {statistic.name: statistic.list_data()[0] for statistic in statistics(net)}
    for statistic in statistics(net):
        statistic.set_data(first[statistic.name])
