"""Sums over all devices through which gradients flow, as synchronized batch normalization needs."""

from collections.abc import Sequence
from typing import Any, Final

import numpy
from mxnet import autograd, cpu, np
from mxnet.ndarray import NDArray

from frameworks.mxnet.hosts import all_gather_rows
from frameworks.mxnet.layouts import Shards, Tensor

FEW: Final = 4
"""Up to this number, MXNet adds gradients of a variable in order; above it, in reverse."""


def all_reduce(parts: Shards) -> Shards:
    """All-reduces one tensor per device; gradients flow through it."""
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
    totals = summing(np.stack([total.as_in_ctx(sums[0].ctx) for total in sums]))
    means = totals / summing.pixels
    return [mean.as_in_ctx(X.ctx) for mean, X in zip(means, shards, strict=True)]


class SumOverHosts(autograd.Function):  # type: ignore[misc]
    """The sum of the rows (m, n) of all processes, m times; its gradient is such a sum, too."""

    def __init__(self, pixels: Sequence[int], devices: int) -> None:
        """`pixels` counts the elements in the sum of each row, then of all rows."""
        super().__init__()
        self.counts, self.devices, self.pixels, self.few = pixels, devices, 0, True

    def forward(self, rows: Tensor) -> Tensor:
        """The sums of rows."""
        gathered = self.gathered(rows, self.counts)
        pixels = [int(row[-1]) for row in gathered]
        self.pixels, self.few = sum(pixels), sum(map(bool, pixels)) <= FEW
        return self.copies(gathered, rows)

    def backward(self, grads: NDArray) -> NDArray:
        """The sums of gradients; here, in a thread of MXNet, arrays have the old interface."""
        rows = grads.as_np_ndarray()
        gathered = self.gathered(rows, [0] * len(rows))
        return self.copies(gathered if self.few else gathered[::-1], rows).as_nd_ndarray()

    def gathered(self, rows: Tensor, last: Sequence[int]) -> Sequence[Tensor]:
        """The rows of all devices, with the count as their last element."""
        padded = np.zeros((self.devices, rows.shape[1] + 1), rows.dtype, ctx=cpu())
        padded[: len(rows), :-1] = rows
        padded[: len(rows), -1] = np.array(last, rows.dtype, ctx=cpu())
        rows_of_all: Sequence[Tensor] = all_gather_rows(padded)
        return rows_of_all

    def copies(self, gathered: Sequence[Tensor], rows: Tensor) -> Tensor:
        """The sum over all devices, once for each of these rows."""
        total = sum(gathered[1:], gathered[0])[:-1]
        return np.stack([total] * len(rows)).as_in_ctx(rows.ctx)


def attend(devices: int, channels: int, dtype: Any) -> None:
    """Takes part in such sums of the other processes, for devices that have nothing."""
    for _ in range(2):  # the mean, and the variance
        all_gather_rows(np.zeros((devices, channels + 1), numpy.dtype(dtype)))
