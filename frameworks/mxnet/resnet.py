"""The book's ResNet-18 in MXNet; its parameters have the canonical names.

Layers take the shards of all devices at once: synchronized batch norm has to see them all.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy
from mxnet import autograd, np, npx
from mxnet.gluon import HybridBlock, nn

from common.models.nets import BLOCKS, EPSILON, MOMENTUM, STAGES

Tensor: TypeAlias = np.ndarray
Shards = list[Tensor]

relu = nn.Activation("relu")  # npx.relu takes several times as long


def each(layer: Callable[[Tensor], Tensor], shards: Shards) -> Shards:
    """What a layer makes of each shard, on the shard's device."""
    return [layer(X) for X in shards]


def batch_norm(
    X: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, var: Tensor, *, eps: float = EPSILON
) -> Tensor:
    """`X` (n, channels, rows, columns) normalized by the given statistics, scaled and shifted."""
    options = {"fix_gamma": False, "use_global_stats": True}
    # cuDNN may refuse an eps as small as that of `affine`.
    return npx.batch_norm(X, scale, shift, mean, var, eps=eps, cudnn_off=True, **options)


def affine(X: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """`scale * X + shift` for each channel, as batch norm by mean 0 and variance 1.

    The gradient of a broadcast product or sum takes MXNet several times as long. Batch norm adds
    up number by number, so each image has channels of its own: that is ten times as exact.
    """
    planes = X.reshape(1, -1, *X.shape[2:])
    scale, shift = np.tile(scale, len(X)), np.tile(shift, len(X))
    Y = batch_norm(planes, scale, shift, np.zeros_like(shift), np.ones_like(shift), eps=0)
    return Y.reshape(X.shape)


def all_reduce(parts: Shards) -> Shards:
    """The sum of tensors that lie on k devices, on each of them; gradients flow through it."""
    first, *others = parts
    total = sum((part.as_in_ctx(first.ctx) for part in others), first)
    return [total.as_in_ctx(part.ctx) for part in parts]


def means_over(shards: Shards) -> Shards:
    """The mean (channels,) over all the shards (n, channels, rows, columns), on each device."""
    pixels = sum(X.size // X.shape[1] for X in shards)
    sums = [X.sum((2, 3)).sum(0) for X in shards]  # in one go it takes MXNet twice as long
    return [total / pixels for total in all_reduce(sums)]


class BatchNorm(HybridBlock):  # type: ignore[misc]
    """Batch normalization over a device's shard, in double precision.

    MXNet adds up number by number: in single precision two digits of seven would be lost. A
    backward pass in training mode moves the running statistics.
    """

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

    def normalize(self, shards: Shards) -> Shards:
        """Normalizes the shards of a minibatch, by the statistics over all of them."""
        means = means_over(shards)
        centred = [affine(X, np.ones_like(m), -m) for X, m in zip(shards, means, strict=True)]
        variances = means_over(each(np.square, centred))
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


class Residual(HybridBlock):  # type: ignore[misc]
    """Two convolutions and a shortcut around them."""

    def __init__(self, channels: int, out: int, norm: type[BatchNorm], prefix: str) -> None:
        super().__init__(prefix=prefix)
        stride = 1 if channels == out else 2
        with self.name_scope():
            self.conv1 = nn.Conv2D(out, 3, stride, 1, in_channels=channels, prefix="conv1.")
            self.bn1 = norm(out, "bn1.")
            self.conv2 = nn.Conv2D(out, 3, 1, 1, in_channels=out, prefix="conv2.")
            self.bn2 = norm(out, "bn2.")
            if stride > 1:
                self.conv3 = nn.Conv2D(out, 1, stride, in_channels=channels, prefix="conv3.")

    def hybrid_forward(self, F: Any, shards: Shards) -> Shards:
        """Shards (n, channels, rows, columns) to (n, out, rows / stride, columns / stride)."""
        Y = each(relu, self.bn1(each(self.conv1, shards)))
        Y = self.bn2(each(self.conv2, Y))
        shortcuts = each(self.conv3, shards) if hasattr(self, "conv3") else shards
        return [relu(y + shortcut) for y, shortcut in zip(Y, shortcuts, strict=True)]


class ResNet18(HybridBlock):  # type: ignore[misc]
    """A 3 x 3 stem without pooling, four stages of two residual blocks, a dense layer."""

    def __init__(self, width: int, norm: type[BatchNorm]) -> None:
        super().__init__(prefix="")
        self.whole = norm is BatchNorm
        with self.name_scope():
            self.conv1 = nn.Conv2D(width, 3, 1, 1, in_channels=1, prefix="conv1.")
            self.bn1 = norm(width, "bn1.")
            self.blocks = nn.HybridSequential(prefix="")
            channels = width
            for stage in STAGES:
                for block in BLOCKS:
                    out = width * 2 ** (stage - 1)
                    self.blocks.add(Residual(channels, out, norm, f"stage{stage}.block{block}."))
                    channels = out
            self.fc = nn.Dense(10, in_units=channels, prefix="fc.")

    def hybridize(self, *args: Any, **flags: Any) -> None:
        """Compiles the net, but only where each shard goes through it by itself, in float32."""
        if self.whole:
            super().hybridize(*args, **flags)

    def forward(self, shards: Shards) -> Shards:
        """The logits (n, 10) of each shard's images (n, 1, 28, 28)."""
        forward: Callable[[Shards], Shards] = super().forward
        if self.whole:
            return [Y for X in shards for Y in forward([X])]
        return forward(shards)

    def hybrid_forward(self, F: Any, shards: Shards) -> Shards:
        """The same, of shards that may go through the net together."""
        Y = each(relu, self.bn1(each(self.conv1, shards)))
        return [self.fc(y.mean((2, 3))) for y in self.blocks(Y)]


def resnet18(width: int, batch_norm: str, dtype: "numpy.dtype[Any]") -> ResNet18:
    """The book's ResNet-18, scaled to `width` channels in the first stage (the book's: 64)."""
    norm = BatchNorm if dtype == numpy.float32 else ExactBatchNorm
    net = ResNet18(width, SyncBatchNorm if batch_norm == "sync" else norm)
    net.cast(dtype)
    return net
