"""Solutions to exercises of the chapter on allreduce."""

from collections.abc import Sequence
from typing import Final

from common.parallel.schedules import SCHEDULES
from common.scaling.cluster import ITEM, Link, path, seconds

LARGEST: Final = 2**40
"""The most entries of a vector that is looked at."""


def busiest(algorithm: str, k: int, sizes: Sequence[int]) -> tuple[int, int]:
    """Messages and bytes that pass the busiest device, each tensor being summed by itself.

    The bytes stay the same, to a chunk's rounding. The messages are as many times more as there are
    tensors, and each of them costs its latency: so frameworks put gradients together.
    """
    paths = [path(SCHEDULES[algorithm](k), size) for size in sizes]
    return sum(each.messages for each in paths), sum(ITEM * each.moved for each in paths)


def ring_beats_halving_from(k: int, link: Link) -> int | None:
    """The least entries from which a ring is faster than halving; None if it never is.

    Where k is a power of two, halving moves as little in fewer messages. Else the devices beyond
    the largest power hand over whole vectors, so that halving moves more than twice as much, and
    for a vector that is long enough the ring's many small messages cost less.
    """

    def ring_wins(entries: int) -> bool:
        return seconds("ring", k, entries, link) < seconds("halving", k, entries, link)

    if not ring_wins(LARGEST):
        return None
    few, enough = 0, LARGEST
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if ring_wins(middle) else (middle, enough)
    return enough
