"""Sums over all devices through which gradients flow, as synchronized batch normalization needs."""

from collections.abc import Sequence
from typing import Any, Final

import numpy
from mxnet import autograd, cpu, np
from mxnet.ndarray import NDArray

from frameworks.mxnet.hosts import exchanged
from frameworks.mxnet.layouts import Shards, Tensor

FEW: Final = 4
"""Up to so many gradients of the same number MXNet adds in their order, more of them backwards."""


def all_reduce(parts: Shards) -> Shards:
    """The sum of tensors that lie on k devices, on each of them; gradients flow through it."""
    first, *others = parts
    total = sum((part.as_in_ctx(first.ctx) for part in others), first)
    return [total.as_in_ctx(part.ctx) for part in parts]


def sums_of(shards: Shards) -> tuple[Shards, list[int]]:
    """The sum (channels,) of each shard (n, channels, rows, columns), and of how many numbers."""
    sums = [X.sum((2, 3)).sum(0) for X in shards]  # in one go it takes MXNet twice as long
    return sums, [X.size // X.shape[1] for X in shards]


def means_over(shards: Shards) -> Shards:
    """The mean (channels,) over all the shards (n, channels, rows, columns), on each device."""
    sums, pixels = sums_of(shards)
    count = sum(pixels)
    return [total / count for total in all_reduce(sums)]


def means_over_hosts(shards: Shards, devices: int) -> Shards:
    """The mean over the shards of all processes, on each of its `devices` that has a shard."""
    sums, pixels = sums_of(shards)
    summing = SumOverHosts(pixels, devices)
    totals = summing(np.stack([each.as_in_ctx(sums[0].ctx) for each in sums]))
    means = totals / summing.pixels
    return [mean.as_in_ctx(X.ctx) for mean, X in zip(means, shards, strict=True)]


class SumOverHosts(autograd.Function):  # type: ignore[misc]
    """The sum of the rows (m, n) of all processes, m times; its gradient is such a sum, too."""

    def __init__(self, pixels: Sequence[int], devices: int) -> None:
        """`pixels` tells of how many numbers each row is the sum, and then that of all rows."""
        super().__init__()
        self.counts, self.devices, self.pixels, self.few = pixels, devices, 0, True

    def forward(self, rows: Tensor) -> Tensor:
        """The sums of rows."""
        everyones = self.everyones(rows, self.counts)
        pixels = [int(row[-1]) for row in everyones]
        self.pixels, self.few = sum(pixels), sum(map(bool, pixels)) <= FEW
        return self.copies(everyones, rows)

    def backward(self, grads: NDArray) -> NDArray:
        """The sums of gradients; here, in a thread of MXNet, arrays have the old interface."""
        rows = grads.as_np_ndarray()
        everyones = self.everyones(rows, [0] * len(rows))
        return self.copies(everyones if self.few else everyones[::-1], rows).as_nd_ndarray()

    def everyones(self, rows: Tensor, last: Sequence[int]) -> Sequence[Tensor]:
        """What all devices have: these rows, with one more number at their end."""
        padded = np.zeros((self.devices, rows.shape[1] + 1), rows.dtype, ctx=cpu())
        padded[: len(rows), :-1] = rows
        padded[: len(rows), -1] = np.array(last, rows.dtype, ctx=cpu())
        found: Sequence[Tensor] = exchanged(padded)
        return found

    def copies(self, everyones: Sequence[Tensor], rows: Tensor) -> Tensor:
        """The sum of what all devices have, once for each of these rows."""
        total = sum(everyones[1:], everyones[0])[:-1]
        return np.stack([total] * len(rows)).as_in_ctx(rows.ctx)


def attend(devices: int, channels: int, dtype: Any) -> None:
    """Takes part in such sums of the other processes, for devices that have nothing."""
    for _ in range(2):  # the mean, and the variance
        exchanged(np.zeros((devices, channels + 1), numpy.dtype(dtype)))
