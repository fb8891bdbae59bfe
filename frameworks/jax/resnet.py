"""The book's ResNet-18 in Flax NNX, as one device's shard of a minibatch sees it."""

from flax import nnx
from jax import Array as Tensor

from common.models.nets import BLOCKS, STAGES
from frameworks.jax.batch_norm import BatchNorm
from frameworks.jax.layouts import AXIS


class Residual(nnx.Module):
    """Two convolutions and a shortcut around them."""

    def __init__(self, channels: int, out: int, axis: str | None, rngs: nnx.Rngs) -> None:
        stride = 1 if channels == out else 2
        # Padding "SAME" would be (0, 1) where the stride is 2.
        self.conv1 = nnx.Conv(channels, out, (3, 3), strides=stride, padding=1, rngs=rngs)
        self.bn1 = BatchNorm(out, axis)
        self.conv2 = nnx.Conv(out, out, (3, 3), padding=1, rngs=rngs)
        self.bn2 = BatchNorm(out, axis)
        if stride > 1:
            self.conv3 = nnx.Conv(channels, out, (1, 1), strides=stride, padding=0, rngs=rngs)

    def __call__(self, X: Tensor, mask: Tensor | None) -> Tensor:
        """(n, rows, columns, channels) to (n, rows / stride, columns / stride, out)."""
        Y = nnx.relu(self.bn1(self.conv1(X), mask))
        Y = self.bn2(self.conv2(Y), mask)
        shortcut = self.conv3(X) if hasattr(self, "conv3") else X
        return nnx.relu(Y + shortcut)


class ResNet18(nnx.Module):
    """A 3 x 3 stem without pooling, four stages of two residual blocks, a dense layer."""

    def __init__(self, width: int, axis: str | None, rngs: nnx.Rngs) -> None:
        self.conv1 = nnx.Conv(1, width, (3, 3), padding=1, rngs=rngs)
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
