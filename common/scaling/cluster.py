"""The alpha-beta model: what an allreduce costs on a cluster.

Every device has one full-duplex link. In a round it sends and receives one message after the other
each way, then it adds. The round ends with the slowest device.
"""

from collections import Counter
from typing import Final, NamedTuple

from common.parallel.schedules import SCHEDULES, Schedule
from common.parallel.shards import shard_sizes

ITEM: Final = 4
"""Bytes of an entry: gradients are float32."""

ALIKE: Final = 0.01
"""The relative difference up to which two times count as the same."""


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

    def seconds(self, path: Path) -> float:
        """How long the path takes."""
        moved = path.messages * self.latency + ITEM * path.moved * self.per_byte
        return moved + ITEM * path.added * self.per_byte_added


def path(schedule: Schedule, entries: int) -> Path:
    """The work of the busiest device of each round, together."""
    sizes = shard_sizes(entries, schedule.chunks)
    messages = moved = added = 0
    for transfers in schedule.rounds:
        count, size, adds = Counter[tuple[str, int]](), Counter[tuple[str, int]](), Counter[int]()
        for each in transfers:
            chunk = sum(sizes[each.chunks.start : each.chunks.stop])
            for end in (("sends", each.source), ("receives", each.target)):
                count[end] += 1
                size[end] += chunk
            adds[each.target] += chunk * each.adds
        messages += max(count.values())
        moved += max(size.values())
        added += max(adds.values())
    return Path(messages, moved, added)


def seconds(algorithm: str, k: int, entries: int, link: Link) -> float:
    """How long an allreduce of `entries` float32 numbers takes on k devices."""
    return link.seconds(path(SCHEDULES[algorithm](k), entries))


def winners(times: dict[str, float]) -> list[str]:
    """The fastest, and all that are as fast within 1 %."""
    limit = (1 + ALIKE) * min(times.values())
    return [name for name, taken in times.items() if taken <= limit]
