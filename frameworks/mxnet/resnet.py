"""The book's ResNet-18 in MXNet, on the shards of all devices at once, with canonical names."""

from collections.abc import Callable
from typing import Any

import numpy
from mxnet.gluon import HybridBlock, nn

from common.models.nets import BLOCKS, STAGES
from frameworks.mxnet.batch_norm import BatchNorm, batch_norm_of
from frameworks.mxnet.layouts import Shards, each

relu = nn.Activation("relu")  # npx.relu takes several times as long


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
    net = ResNet18(width, batch_norm_of(batch_norm, dtype))
    net.cast(dtype)
    return net
