"""Batch normalization in PyTorch: over each device's shard, or over the global minibatch."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed as dist, nn
from torch.nn import functional as F

from common.models.nets import EPSILON, MOMENTUM, trainable


class BatchNorm2d(nn.BatchNorm2d):
    """Batch normalization over a shard, maybe an empty one, with a biased running variance."""

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
        """Normalizes by PyTorch's kernel, which on CPUs adds up float32 in double precision."""
        mean, var = torch.zeros_like(self.bias), torch.zeros_like(self.bias)
        # With momentum 1, they become the minibatch's.
        Y = F.batch_norm(X, mean, var, self.weight, self.bias, True, momentum=1, eps=self.eps)
        n = X.numel() // X.shape[1]
        self.remember(mean, var * (1 - 1 / n), MOMENTUM)
        return Y

    def normalize_in_parts(self, X: Tensor) -> Tensor:
        """Normalizes by sums in parts: PyTorch's naive sum is a hundred times less exact."""
        pixels = X.new_full((1,), X.numel() // X.shape[1])
        total = self.total(torch.cat([X.sum((0, 2, 3)), pixels]))
        n = total[-1].detach()
        mean = total[:-1] / n.clamp(min=1)
        centred: Tensor = X - mean[:, None, None]
        var = self.total(centred.square().sum((0, 2, 3))) / n.clamp(min=1)
        self.remember(mean.detach(), var.detach(), MOMENTUM * n.clamp(max=1))
        scale = self.weight * torch.rsqrt(var + self.eps)
        # By mean 0 and variance 1 it only scales and shifts, in one pass. Not every PyTorch takes 0
        # for eps; this one is negligible.
        identity = torch.zeros_like(self.bias).detach(), torch.ones_like(self.bias).detach()
        tiny = torch.finfo(X.dtype).tiny
        return F.batch_norm(centred, *identity, scale, self.bias, eps=tiny)

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
        """The sum over all processes of a tensor of any shape."""
        total = tensor.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        """Every process's output depends on this tensor, so the gradients are summed, too."""
        return AllReduce.forward(ctx, grads[0])


all_reduce: Callable[[Tensor], Tensor] = AllReduce.apply


class SyncBatchNorm2d(BatchNorm2d):
    """Batch normalization over the global minibatch: `nn.SyncBatchNorm` is for GPUs only."""

    def normalize(self, X: Tensor) -> Tensor:
        """Normalizes by sums over all processes."""
        return self.normalize_in_parts(X)

    def total(self, sums: Tensor) -> Tensor:
        """All-reduces the local shard's sums (channels,)."""
        return all_reduce(sums)


BATCH_NORMS = {"per-device": BatchNorm2d, "sync": SyncBatchNorm2d}


def share_statistics(net: nn.Module) -> None:
    """Gives every device the running statistics of the first one."""
    for name, buffer in net.named_buffers():
        if not trainable(name):
            dist.broadcast(buffer, 0)
