"""Allreduce as a schedule: which device sends what to which, round by round.

In the end every device has the sum of all devices' vectors, which are cut into chunks.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeVar

from common.parallel.shards import shard_sizes


@dataclass(frozen=True)
class Transfer:
    """A message: chunks of `source`, which `target` adds to its own, or stores."""

    source: int
    target: int
    chunks: range
    adds: bool


Round = tuple[Transfer, ...]
"""Simultaneous messages: each carries what its source had before the round."""


@dataclass(frozen=True)
class Schedule:
    """An allreduce between `devices` of vectors that are cut into `chunks`."""

    devices: int
    chunks: int
    rounds: tuple[Round, ...]

    def traffic(self, size: int) -> list[tuple[int, int]]:
        """The entries that each device sends and receives for `size` entries."""
        sizes = shard_sizes(size, self.chunks)
        sent, received = [0] * self.devices, [0] * self.devices
        for transfer in chain(*self.rounds):
            entries = sum(sizes[chunk] for chunk in transfer.chunks)
            sent[transfer.source] += entries
            received[transfer.target] += entries
        return list(zip(sent, received, strict=True))


Chunk = TypeVar("Chunk")


def execute(
    schedule: Schedule,
    held: list[list[Chunk]],
    receive: Callable[[Chunk, int], Chunk],
    add: Callable[[Any, Chunk], Chunk] = operator.add,
) -> None:
    """Carries out a schedule: at last, `held[device][chunk]` is the sum over devices.

    `receive` copies a chunk to a device; `add` sums two chunks of one device.
    """
    for transfers in schedule.rounds:
        # All messages of a round carry what was there before it.
        arrived = [[receive(held[t.source][i], t.target) for i in t.chunks] for t in transfers]
        for t, chunks in zip(transfers, arrived, strict=True):
            for i, chunk in zip(t.chunks, chunks, strict=True):
                held[t.target][i] = add(held[t.target][i], chunk) if t.adds else chunk


def star(k: int) -> Schedule:
    """The book's: the first device sums, then sends the sum to all others."""
    whole, others = range(1), range(1, k)
    inwards = (Transfer(device, 0, whole, adds=True) for device in others)
    outwards = (Transfer(0, device, whole, adds=False) for device in others)
    return _schedule(k, 1, [inwards, outwards])


def sharded(k: int) -> Schedule:
    """A star for each chunk, each with another device in its middle."""
    pairs = [(a, b) for a in range(k) for b in range(k) if a != b]
    inwards = (Transfer(a, b, range(b, b + 1), adds=True) for a, b in pairs)
    outwards = (Transfer(a, b, range(a, a + 1), adds=False) for a, b in pairs)
    return _schedule(k, k, [inwards, outwards])


def ring(k: int) -> Schedule:
    """Each device sends to the next: a reduce-scatter, then an all-gather."""

    def step(offset: int, *, adds: bool) -> Iterable[Transfer]:
        for device in range(k):
            chunk = (device + offset) % k
            yield Transfer(device, (device + 1) % k, range(chunk, chunk + 1), adds)

    reduce_scatter = [step(-number, adds=True) for number in range(k - 1)]
    all_gather = [step(1 - number, adds=False) for number in range(k - 1)]
    return _schedule(k, k, reduce_scatter + all_gather)


def tree(k: int) -> Schedule:
    """Sums flow along a binomial tree to the first device, and the total flows back."""
    distances = [2**level for level in range((k - 1).bit_length())]
    edges = [[(child, child - d) for child in range(d, k, 2 * d)] for d in distances]
    up = [[Transfer(a, b, range(1), adds=True) for a, b in level] for level in edges]
    down = [[Transfer(b, a, range(1), adds=False) for a, b in level] for level in edges[::-1]]
    return _schedule(k, 1, up + down)


def halving(k: int) -> Schedule:
    """Recursive halving and doubling: in each round, pairs exchange half of what is left.

    Then they exchange the sums. Devices beyond the largest power of two send their vector
    to another one before, and get the sum from it after.
    """
    inner = 1 << (k.bit_length() - 1)
    whole, pairs = range(inner), [(inner + i, i) for i in range(k - inner)]
    distances = [inner >> level for level in range(1, inner.bit_length())]
    halves = [[_half(i, d, adds=True) for i in range(inner)] for d in distances]
    doubles = [[_half(i, d, adds=False) for i in range(inner)] for d in distances[::-1]]
    fold = [Transfer(extra, partner, whole, adds=True) for extra, partner in pairs]
    unfold = [Transfer(partner, extra, whole, adds=False) for extra, partner in pairs]
    return _schedule(k, inner, [fold, *halves, *doubles, unfold])


def _half(device: int, distance: int, *, adds: bool) -> Transfer:
    """What a device sends to its partner: the half that one keeps, or its own."""
    partner = device ^ distance
    owner = partner if adds else device
    start = owner - owner % distance
    return Transfer(device, partner, range(start, start + distance), adds)


def _schedule(k: int, chunks: int, rounds: Sequence[Iterable[Transfer]]) -> Schedule:
    """A schedule without the rounds in which nothing is sent."""
    return Schedule(k, chunks, tuple(filter(None, map(tuple, rounds))))


SCHEDULES: Final[dict[str, Callable[[int], Schedule]]] = {
    "star": star,
    "sharded": sharded,
    "ring": ring,
    "tree": tree,
    "halving": halving,
}
"""By name: the schedule for k devices."""
