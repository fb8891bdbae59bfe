"""The alpha-beta model: what an allreduce costs on a cluster.

Every device has one full-duplex link. In a round it sends and receives one message after the other
each way, then it adds. The round ends with the slowest device.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from common.parallel.schedules import SCHEDULES, Schedule
from common.parallel.shards import shard_sizes

ITEM: Final = 4
"""Bytes of an entry: gradients are float32."""

SECONDS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
BYTES: Final = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


class Path(NamedTuple):
    """What the busiest devices do: messages one after the other, entries moved and added."""

    messages: int
    moved: int
    added: int


class Link(NamedTuple):
    """Alpha, beta and gamma: seconds of a message, of each byte moved, of each byte added."""

    latency: float
    per_byte: float
    per_byte_added: float


def path(schedule: Schedule, entries: int) -> Path:
    """The work of the busiest device of each round, together."""
    sizes = shard_sizes(entries, schedule.chunks)
    messages = moved = added = 0
    for transfers in schedule.rounds:
        count, size, adds = (Counter[tuple[str, int]]() for _ in range(3))
        for transfer in transfers:
            length = sum(sizes[transfer.chunks.start : transfer.chunks.stop])
            for end in (("sends", transfer.source), ("receives", transfer.target)):
                count[end] += 1
                size[end] += length
            adds[end] += length * transfer.adds
        messages += max(count.values())
        moved += max(size.values())
        added += max(adds.values())
    return Path(messages, moved, added)


def seconds(algorithm: str, k: int, entries: int, link: Link) -> float:
    """The time of an allreduce of `entries` float32 numbers on k devices."""
    messages, moved, added = path(SCHEDULES[algorithm](k), entries)
    return messages * link.latency + ITEM * (moved * link.per_byte + added * link.per_byte_added)


def winners(times: dict[str, float]) -> list[str]:
    """The fastest, and all that are as fast within 1 %."""
    limit = 1.01 * min(times.values())
    return [name for name, time in times.items() if time <= limit]


def format_seconds(value: float) -> str:
    """A time in three digits."""
    return _scaled(value, SECONDS)


def format_bytes(entries: int) -> str:
    """The size of a vector of float32 numbers in three digits."""
    return _scaled(ITEM * entries, BYTES)


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    """The value in the largest unit that leaves at least 1; what rounds to 1,000 takes the next."""
    size, name = next((each for each in units if value >= 0.9995 * each[0]), units[-1])
    return f"{value / size:#.3g}".rstrip(".") + f" {name}"
