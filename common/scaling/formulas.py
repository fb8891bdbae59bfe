"""What an allreduce costs on a cluster, in closed form.

Every device has one full-duplex link. What it sends in a round goes out one after the other, what
it receives comes in so at the same time, and then it adds. The round ends with the slowest device.
Between the links, nothing gets in the way of anything.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

ITEM: Final = 4
"""Bytes of an entry: gradients are float32."""

ALIKE: Final = 0.01
"""The relative difference up to which two times count as the same."""


@dataclass(frozen=True)
class Path:
    """What the busiest device does: messages one after the other, entries moved and added."""

    messages: int
    moved: int
    added: int


@dataclass(frozen=True)
class Link:
    """Alpha, beta and gamma: seconds of a message, of each byte moved, of each byte added."""

    latency: float
    per_byte: float
    per_byte_added: float

    def seconds(self, path: Path) -> float:
        """How long the path takes."""
        moved = path.messages * self.latency + ITEM * path.moved * self.per_byte
        return moved + ITEM * path.added * self.per_byte_added


def star(k: int, entries: int) -> Path:
    """The first device receives and adds k - 1 vectors, then sends as many."""
    return Path(2 * (k - 1), 2 * (k - 1) * entries, (k - 1) * entries)


def ring(k: int, entries: int) -> Path:
    """In each of 2 (k - 1) rounds, some device moves the largest chunk; in half of them it adds.

    In `sharded` a device moves as many messages of that size, in two rounds.
    """
    chunk = -(-entries // k)
    return Path(2 * (k - 1), 2 * (k - 1) * chunk, (k - 1) * chunk)


def tree(k: int, entries: int) -> Path:
    """The first device receives a vector on each level, adds it, and sends as many later."""
    levels = (k - 1).bit_length()
    return Path(2 * levels, 2 * levels * entries, levels * entries)


def halving(k: int, entries: int) -> Path:
    """The first device receives one half after another; before, the vector of a device too many."""
    levels = k.bit_length() - 1
    quotient, rest = divmod(entries, 1 << levels)
    # A block of chunks begins with the larger ones: the first block is the largest of its length.
    halves = sum((quotient << level) + min(1 << level, rest) for level in range(levels))
    extra = int(k > 1 << levels)
    moved = halves + extra * entries
    return Path(2 * (levels + extra), 2 * moved, moved)


FORMULAS: Final[dict[str, Callable[[int, int], Path]]] = {
    "star": star,
    "sharded": ring,
    "ring": ring,
    "tree": tree,
    "halving": halving,
}
"""By name: the path for k devices and a vector of any number of entries."""


def seconds(algorithm: str, k: int, entries: int, link: Link) -> float:
    """How long an allreduce of `entries` float32 numbers takes on k devices."""
    return link.seconds(FORMULAS[algorithm](k, entries))


def winners(times: dict[str, float]) -> list[str]:
    """The fastest, and all that are as fast within 1 %."""
    limit = (1 + ALIKE) * min(times.values())
    return [name for name, taken in times.items() if taken <= limit]
