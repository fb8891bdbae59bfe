"""Solutions to exercises of the chapter on allreduce."""

from collections.abc import Sequence
from typing import Final

from common.parallel.schedules import SCHEDULES
from common.scaling.cluster import ITEM, Link, path, seconds

LARGEST: Final = 2**40
"""The length at which the search ends."""


def busiest_traffic(algorithm: str, k: int, sizes: Sequence[int]) -> tuple[int, int]:
    """Messages and bytes of the busiest device if each tensor is summed by itself.

    The bytes stay the same, up to the rounding of chunks. With t tensors there are t times as many
    messages, and each costs its latency: so frameworks put gradients together.
    """
    paths = [path(SCHEDULES[algorithm](k), size) for size in sizes]
    return sum(route.messages for route in paths), sum(ITEM * route.moved for route in paths)


def ring_beats_halving_from(k: int, link: Link) -> int | None:
    """The number of entries from which a ring is faster than halving; None if it never is.

    If k is a power of two, halving sends as little in fewer messages. Otherwise the devices beyond
    the largest power send whole vectors, so that halving sends more than twice as much, and for
    long vectors the ring's many small messages cost less.
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
