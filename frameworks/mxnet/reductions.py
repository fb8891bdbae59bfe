"""Sums over all devices through which gradients flow, as synchronized batch normalization needs."""

from frameworks.mxnet.layouts import Shards


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
