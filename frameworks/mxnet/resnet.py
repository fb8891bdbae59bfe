"""The book's ResNet-18 in MXNet; its parameters have the canonical names.

Layers take the shards of all devices at once: synchronized batch norm has to see them all.
"""

from collections.abc import Callable
from typing import TypeAlias

import mxnet as mx
import numpy
from mxnet import autograd, np, npx
from mxnet.gluon import Block, nn

from common.models import BLOCKS, EPSILON, MOMENTUM, STAGES

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


class BatchNorm(Block):  # type: ignore[misc]
    """Batch normalization over each device's shard.

    `nn.BatchNorm` moves its running statistics in every backward pass; here a minibatch's wait in
    `seen` for `remember`.
    """

    def __init__(self, channels: int, prefix: str) -> None:
        super().__init__(prefix=prefix)
        self.weight = self.params.get("weight", shape=(channels,))
        self.bias = self.params.get("bias", shape=(channels,))
        self.running_mean = self.params.get("running_mean", shape=(channels,), grad_req="null")
        self.running_var = self.params.get("running_var", shape=(channels,), grad_req="null")
        self.seen: dict[mx.Context, tuple[Tensor, Tensor]] = {}

    def forward(self, shards: Shards) -> Shards:
        """Normalizes shards (n, channels, rows, columns), none of them empty."""
        if not autograd.is_training():
            return each(self.evaluate, shards)
        self.seen = {}
        return self.normalize(shards)

    def evaluate(self, X: Tensor) -> Tensor:
        """Normalizes a shard by its device's running statistics."""
        params = self.weight, self.bias, self.running_mean, self.running_var
        return batch_norm(X, *(param.data(X.ctx) for param in params))

    def normalize(self, shards: Shards) -> Shards:
        """Normalizes the shards of a minibatch, each by its own statistics."""
        if shards[0].dtype == numpy.float32:
            return each(self.normalize_in_double, shards)
        return [Y for X in shards for Y in self.normalize_together([X])]

    def normalize_in_double(self, X: Tensor) -> Tensor:
        """Normalizes a shard by its own statistics, in double precision.

        MXNet adds up number by number: in single precision two digits of seven would be lost.
        """
        weight, bias = (p.data(X.ctx).astype("float64") for p in (self.weight, self.bias))
        # Without momentum, the backward pass leaves the minibatch's own statistics here.
        mean, var = self.seen[X.ctx] = np.zeros_like(bias), np.zeros_like(bias)
        options = {"eps": EPSILON, "momentum": 0, "fix_gamma": False}
        Y = npx.batch_norm(X.astype("float64"), weight, bias, mean, var, **options)
        return Y.astype(X.dtype)

    def normalize_together(self, shards: Shards) -> Shards:
        """Normalizes shards by the statistics over all of them."""
        means = means_over(shards)
        centred = [affine(X, np.ones_like(m), -m) for X, m in zip(shards, means, strict=True)]
        variances = means_over(each(np.square, centred))
        normal = []
        for X, mean, var in zip(centred, means, variances, strict=True):
            self.seen[X.ctx] = mean.detach(), var.detach()
            scale = self.weight.data(X.ctx) / np.sqrt(var + EPSILON)
            normal.append(affine(X, scale, self.bias.data(X.ctx)))
        return normal

    def remember(self) -> None:
        """Moves the running statistics towards those of the last minibatch."""
        for device, statistics in self.seen.items():
            for param, seen in zip((self.running_mean, self.running_var), statistics, strict=True):
                running = param.data(device)
                running += MOMENTUM * (seen.astype(running.dtype) - running)


class SyncBatchNorm(BatchNorm):
    """Batch normalization over the global minibatch: Gluon's knows no NumPy interface."""

    def normalize(self, shards: Shards) -> Shards:
        """Normalizes the shards of a minibatch, by the statistics of the whole."""
        return self.normalize_together(shards)


BATCH_NORMS = {"per-device": BatchNorm, "sync": SyncBatchNorm}


class Residual(Block):  # type: ignore[misc]
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

    def forward(self, shards: Shards) -> Shards:
        """Shards (n, channels, rows, columns) to (n, out, rows / stride, columns / stride)."""
        Y = each(relu, self.bn1(each(self.conv1, shards)))
        Y = self.bn2(each(self.conv2, Y))
        shortcuts = each(self.conv3, shards) if hasattr(self, "conv3") else shards
        return [relu(y + shortcut) for y, shortcut in zip(Y, shortcuts, strict=True)]


class ResNet18(Block):  # type: ignore[misc]
    """A 3 x 3 stem without pooling, four stages of two residual blocks, a dense layer."""

    def __init__(self, width: int, batch_norm: str) -> None:
        super().__init__(prefix="")
        norm = BATCH_NORMS[batch_norm]
        with self.name_scope():
            self.conv1 = nn.Conv2D(width, 3, 1, 1, in_channels=1, prefix="conv1.")
            self.bn1 = norm(width, "bn1.")
            self.blocks = nn.Sequential(prefix="")
            channels = width
            for stage in STAGES:
                for block in BLOCKS:
                    out = width * 2 ** (stage - 1)
                    self.blocks.add(Residual(channels, out, norm, f"stage{stage}.block{block}."))
                    channels = out
            self.fc = nn.Dense(10, in_units=channels, prefix="fc.")

    def forward(self, shards: Shards) -> Shards:
        """The logits (n, 10) of each shard's images (n, 1, 28, 28)."""
        Y = each(relu, self.bn1(each(self.conv1, shards)))
        return [self.fc(y.mean((2, 3))) for y in self.blocks(Y)]


def resnet18(width: int, batch_norm: str) -> ResNet18:
    """The book's ResNet-18, scaled to `width` channels in the first stage (the book's: 64)."""
    return ResNet18(width, batch_norm)
