"""The alpha-beta model: what an allreduce costs on a cluster.

Every device has one full-duplex link. In a round it sends and receives one message after
the other each way, then it adds. The round ends with the slowest device.
"""

from collections import Counter
from typing import Final, NamedTuple

from common.parallel.schedules import SCHEDULES, Schedule
from common.parallel.shards import shard_sizes

ITEM: Final = 4
"""Bytes of an entry: gradients are float32."""

SCALES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"))


class Path(NamedTuple):
    """The work of the busiest devices: messages in turn, entries moved and added."""

    messages: int
    moved: int
    added: int


class Link(NamedTuple):
    """Alpha, beta and gamma: seconds of a message, a byte moved, a byte added."""

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
    messages, moved, added = path(SCHEDULES[algorithm](k), entries)
    by_size = moved * link.per_byte + added * link.per_byte_added
    return messages * link.latency + ITEM * by_size


def with_prefix(value: float, unit: str) -> str:
    """A number of seconds or bytes in three digits, with a prefix of the SI."""
    # What rounds to 1,000 takes the next prefix.
    size, prefix = next((scale for scale in SCALES if value >= 0.9995 * scale[0]), SCALES[-1])
    return f"{value / size:#.3g}".rstrip(".") + f" {prefix}{unit}"
