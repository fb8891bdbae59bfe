"""Measures allreduces, and predicts them from messages and additions."""

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from common.parallel.schedules import SCHEDULES, Schedule, Transfer
from common.trainers.scratch import FromScratch

SENT: Final = 4
"""How often a trial sends the vector."""

Call = Callable[[], Sequence[Any]]


class Costs(NamedTuple):
    """Seconds to cut a vector and join its chunks; of a chunk's message, its addition."""

    ends: float
    message: float
    addition: float


class Compared(NamedTuple):
    """An allreduce: its measured seconds and, if it has a schedule, what parts cost."""

    entries: int
    devices: int
    algorithm: str
    measured: float
    costs: Costs | None

    def predicted(self) -> float | None:
        """The seconds of all messages and additions in turn; None: no schedule.

        Simulated devices share one processor. Each chunk is a message of its own.
        """
        if self.costs is None:
            return None
        ends, message, addition = self.costs
        rounds = SCHEDULES[self.algorithm](self.devices).rounds
        parts = (len(t.chunks) * (message + addition * t.adds) for t in chain(*rounds))
        return self.devices * ends + sum(parts)


@dataclass(frozen=True)
class Laboratory:
    """A framework with its simulated devices."""

    chapter: FromScratch
    devices: Sequence[Any]

    def allreduce(self, name: str, vectors: Sequence[Any]) -> Call:
        collectives = self.chapter.collectives
        if name not in SCHEDULES:
            return partial(collectives.native, vectors)
        return partial(collectives.by_schedule, SCHEDULES[name](len(vectors)), vectors)

    def compare(self, entries: int, names: Iterable[str], budget: float) -> list[Compared]:
        """Times float32 allreduces between all devices, and their parts, in `budget` seconds."""
        k = len(self.devices)
        vectors = self.chapter.kernels.scatter(np.ones(k * entries, np.float32), self.devices)
        calls: dict[Hashable, Call] = {}
        calls |= {name: self.allreduce(name, vectors) for name in names}
        chunks = {name: SCHEDULES[name](k).chunks for name in names if name in SCHEDULES}
        by_schedule = self.chapter.collectives.by_schedule
        for trial in chain.from_iterable(map(trials, chunks.values())):
            calls[trial] = partial(by_schedule, trial, vectors[:2])
        times = self.timed(calls, budget)
        costs = {name: costs_of(count, times) for name, count in chunks.items()}
        return [Compared(entries, k, name, times[name], costs.get(name)) for name in names]

    def timed(self, calls: Mapping[Hashable, Call], budget: float) -> dict[Hashable, float]:
        """The seconds of each call and its queued work: the lower quartile of rounds."""

        def once(call: Call) -> float:
            begun = time.perf_counter()
            self.chapter.synchronize([{"vector": vector} for vector in call()])
            return time.perf_counter() - begun

        rounds = [[once(call) for call in calls.values()]]  # compiles, and does not count
        end = time.perf_counter() + budget
        while len(rounds) < 4 or time.perf_counter() < end:  # the caches are cold first
            rounds.append([min(once(call), once(call)) for call in calls.values()])
        times = np.quantile(rounds[1:], 0.25, axis=0).tolist()  # the least favours short calls
        return dict(zip(calls, times, strict=True))


def trials(chunks: int) -> list[Schedule]:
    """Two devices cut vectors into chunks and join them; also send them to and fro; also add."""
    ends = [(i % 2, 1 - i % 2) for i in range(SENT)]
    return [
        Schedule(2, chunks, tuple((Transfer(a, b, range(chunks), adds),) for a, b in pairs))
        for pairs, adds in (([], False), (ends, False), (ends, True))
    ]


def costs_of(chunks: int, seconds: Mapping[Any, float]) -> Costs:
    """The costs by the times of trials: differences between two of them, at least 0."""
    ends, sent, added = (seconds[trial] for trial in trials(chunks))
    messages = SENT * chunks
    return Costs(ends / 2, max(0.0, sent - ends) / messages, max(0.0, added - sent) / messages)
