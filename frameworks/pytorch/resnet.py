"""The book's ResNet-18 in PyTorch; its state dict has the canonical names."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F

from common.models.nets import BLOCKS, EPSILON, MOMENTUM, STAGES


class BatchNorm2d(nn.BatchNorm2d):
    """Batch normalization over a device's shard, an empty one too.

    `nn.BatchNorm2d` keeps an unbiased running variance, as the other frameworks do not.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=EPSILON, momentum=MOMENTUM)

    def forward(self, X: Tensor) -> Tensor:
        """Normalizes `X` (n, channels, rows, columns)."""
        if not self.training:
            return super().forward(X)
        if X.dtype == torch.float32 and len(X):
            return self.normalize(X)
        return self.normalize_in_parts(X)

    def normalize(self, X: Tensor) -> Tensor:
        """Normalizes by PyTorch's own kernel, which on CPUs adds up float32 in double precision."""
        mean, var = torch.zeros_like(self.bias), torch.zeros_like(self.bias)
        # With momentum 1, they are the minibatch's own in the end.
        Y = F.batch_norm(X, mean, var, self.weight, self.bias, True, momentum=1, eps=self.eps)
        n = X.numel() // X.shape[1]
        self.remember(mean, var * (1 - 1 / n), MOMENTUM)
        return Y

    def normalize_in_parts(self, X: Tensor) -> Tensor:
        """Normalizes by sums in parts: PyTorch adds up number by number.

        In float64 that is a hundred times less exact.
        """
        pixels = X.new_full((1,), X.numel() // X.shape[1])
        total = self.total(torch.cat([X.sum((0, 2, 3)), pixels]))
        n = total[-1].detach()
        mean = total[:-1] / n.clamp(min=1)
        centred: Tensor = X - mean[:, None, None]
        var = self.total(centred.square().sum((0, 2, 3))) / n.clamp(min=1)
        self.remember(mean.detach(), var.detach(), MOMENTUM * n.clamp(max=1))
        scale = self.weight * torch.rsqrt(var + self.eps)
        # By mean 0 and variance 1 it only scales and shifts, in one pass.
        identity = torch.zeros_like(self.bias).detach(), torch.ones_like(self.bias).detach()
        return F.batch_norm(centred, *identity, scale, self.bias, eps=0)

    def total(self, sums: Tensor) -> Tensor:
        """Sums (channels,) over the local shard to those over all that is normalized together."""
        return sums

    def remember(self, mean: Tensor, var: Tensor, momentum: float | Tensor) -> None:
        """Moves the running statistics towards those of a minibatch, both (channels,)."""
        assert self.running_mean is not None
        assert self.running_var is not None
        self.running_mean.lerp_(mean, momentum)
        self.running_var.lerp_(var, momentum)


class AllReduce(torch.autograd.Function):
    """The sum of a tensor over all processes, as a function that has a gradient."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        """A tensor of any shape to the sum of everyone's."""
        total = tensor.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Everyone's sum depends on this tensor, so everyone's gradient counts."""
        return AllReduce.forward(ctx, grads[0])


all_reduce: Callable[[Tensor], Tensor] = AllReduce.apply


class SyncBatchNorm2d(BatchNorm2d):
    """Batch normalization over the global minibatch: `nn.SyncBatchNorm` knows GPUs alone."""

    def normalize(self, X: Tensor) -> Tensor:
        """Normalizes by everyone's sums."""
        return self.normalize_in_parts(X)

    def total(self, sums: Tensor) -> Tensor:
        """Sums (channels,) over the local shard to those over everyone's."""
        return all_reduce(sums)


BATCH_NORMS = {"per-device": BatchNorm2d, "sync": SyncBatchNorm2d}


class Residual(nn.Module):
    """Two convolutions and a shortcut around them."""

    def __init__(self, channels: int, out: int, norm: type[BatchNorm2d]) -> None:
        super().__init__()
        stride = 1 if channels == out else 2
        self.conv1 = nn.Conv2d(channels, out, kernel_size=3, padding=1, stride=stride)
        self.bn1 = norm(out)
        self.conv2 = nn.Conv2d(out, out, kernel_size=3, padding=1)
        self.bn2 = norm(out)
        if stride > 1:
            self.conv3 = nn.Conv2d(channels, out, kernel_size=1, stride=stride)

    def forward(self, X: Tensor) -> Tensor:
        """(n, channels, rows, columns) to (n, out, rows / stride, columns / stride)."""
        Y = F.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        shortcut = self.conv3(X) if hasattr(self, "conv3") else X
        return F.relu(Y + shortcut)


class ResNet18(nn.Module):
    """A 3 x 3 stem without pooling, four stages of two residual blocks, a dense layer."""

    def __init__(self, width: int, batch_norm: str) -> None:
        super().__init__()
        norm = BATCH_NORMS[batch_norm]
        self.conv1 = nn.Conv2d(1, width, kernel_size=3, padding=1)
        self.bn1 = norm(width)
        channels = width
        for stage in STAGES:
            blocks: OrderedDict[str, nn.Module] = OrderedDict()
            for block in BLOCKS:
                out = width * 2 ** (stage - 1)
                blocks[f"block{block}"] = Residual(channels, out, norm)
                channels = out
            self.add_module(f"stage{stage}", nn.Sequential(blocks))
        self.fc = nn.Linear(channels, 10)

    def forward(self, X: Tensor) -> Tensor:
        """The logits (n, 10) of images `X` (n, 1, 28, 28)."""
        Y = F.relu(self.bn1(self.conv1(X)))
        for stage in STAGES:
            Y = self.get_submodule(f"stage{stage}")(Y)
        logits: Tensor = self.fc(Y.mean(dim=(2, 3)))
        return logits


def resnet18(width: int, batch_norm: str) -> ResNet18:
    """The book's ResNet-18, scaled to `width` channels in the first stage (the book's: 64)."""
    return ResNet18(width, batch_norm)
