"""How a minibatch is divided over the devices: one rule, for every framework."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

T = TypeVar("T")


def shard_sizes(examples: int, shards: int) -> list[int]:
    """The sizes of consecutive shards; the first ones hold one more where it is uneven.

    They add up to `examples` and differ by at most one. A shard is empty only where there
    are fewer examples than shards, as in the last minibatch of an epoch. Raises ValueError
    for a negative number of examples or less than one shard.
    """
    if examples < 0 or shards < 1:
        raise ValueError(f"cannot split {examples} examples into {shards} shards")
    size, larger = divmod(examples, shards)
    return [size + 1] * larger + [size] * (shards - larger)


def shard_bounds(examples: int, shards: int) -> list[tuple[int, int]]:
    """Where each shard of `shard_sizes` begins and ends, as (start, stop)."""
    return list(pairwise(accumulate(shard_sizes(examples, shards), initial=0)))


def share_of(parts: Sequence[T], rank: int, world_size: int) -> Sequence[T]:
    """The parts of one of `world_size` processes, each of which has as many."""
    share = len(parts) // world_size
    return parts[rank * share : (rank + 1) * share]
