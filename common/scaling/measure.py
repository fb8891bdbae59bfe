"""Measures allreduces of simulated devices, and predicts them from messages and additions."""

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from common.chapters.data_parallel import FromScratch
from common.parallel.schedules import SCHEDULES, Schedule, Transfer

ROUNDS: Final = 3
"""The fewest rounds in which calls are timed."""

QUARTILE: Final = 0.25
"""The quantile of a call's times that counts: the least would favour short calls over long ones."""

SENT: Final = 4
"""How often a trial sends the vector."""

Call = Callable[[], Sequence[Any]]


class Costs(NamedTuple):
    """Seconds for a vector that is cut into chunks: its ends, a chunk's message and addition.

    The ends are what a device does before and after: it cuts its vector, and joins the chunks.
    """

    ends: float
    message: float
    addition: float


class Compared(NamedTuple):
    """An allreduce of vectors: its measured seconds and, if it has a schedule, what parts cost."""

    entries: int
    devices: int
    algorithm: str
    measured: float
    costs: Costs | None

    def predicted(self) -> float | None:
        """The seconds of all messages and additions, one after the other; None: no schedule.

        Simulated devices share one processor. Each chunk is a message of its own.
        """
        if self.costs is None:
            return None
        rounds = SCHEDULES[self.algorithm](self.devices).rounds
        chunks = [(len(each.chunks), each.adds) for transfers in rounds for each in transfers]
        additions = sum(count for count, adds in chunks if adds)
        ends, message, addition = self.costs
        messages = sum(count for count, _ in chunks)
        return self.devices * ends + messages * message + additions * addition


@dataclass(frozen=True)
class Laboratory:
    """A framework with its simulated devices."""

    chapter: FromScratch
    devices: Sequence[Any]

    def allreduce(self, name: str, vectors: Sequence[Any]) -> Call:
        """The call that sums vectors, one of each device."""
        collectives = self.chapter.collectives
        if name not in SCHEDULES:
            return partial(collectives.native, vectors)
        return partial(collectives.by_schedule, SCHEDULES[name](len(vectors)), vectors)

    def compare(self, entries: int, names: Iterable[str], budget: float) -> list[Compared]:
        """Times allreduces of float32 vectors between all devices, and their parts.

        The budget is in seconds; compiling comes on top.
        """
        k = len(self.devices)
        vectors = self.chapter.kernels.scatter(np.ones(k * entries, np.float32), self.devices)
        calls: dict[Hashable, Call] = {}
        for name in names:
            calls[name] = self.allreduce(name, vectors)
            for trial in trials(k, name):
                calls[trial] = partial(self.chapter.collectives.by_schedule, trial, vectors[:2])
        times = self.timed(calls, budget)
        return [Compared(entries, k, name, times[name], costs_of(k, name, times)) for name in names]

    def timed(self, calls: Mapping[Hashable, Call], budget: float) -> dict[Hashable, float]:
        """The seconds of each call, its queued work included: the lower quartile of many rounds."""

        def once(call: Call) -> float:
            begun = time.perf_counter()
            self.chapter.synchronize([{"vector": vector} for vector in call()])
            return time.perf_counter() - begun

        rounds = [[once(call) for call in calls.values()]]  # compiles, and does not count
        end = time.perf_counter() + budget
        while len(rounds) <= ROUNDS or time.perf_counter() < end:  # the caches are cold first
            rounds.append([min(once(call), once(call)) for call in calls.values()])
        return dict(zip(calls, np.quantile(rounds[1:], QUARTILE, axis=0).tolist(), strict=True))


def trials(k: int, name: str) -> list[Schedule]:
    """What two devices do with vectors that are cut as an algorithm on k devices cuts them.

    They cut and join them; they also send one to and fro; they also add it. Without a schedule,
    there is no trial.
    """
    if name not in SCHEDULES:
        return []
    chunks = SCHEDULES[name](k).chunks
    ends = [(i % 2, 1 - i % 2) for i in range(SENT)]
    return [
        Schedule(2, chunks, tuple((Transfer(a, b, range(chunks), adds),) for a, b in pairs))
        for pairs, adds in (([], False), (ends, False), (ends, True))
    ]


def costs_of(k: int, name: str, seconds: Mapping[Any, float]) -> Costs | None:
    """The costs by the times of trials: differences between two of them, at least 0."""
    if not (schedules := trials(k, name)):
        return None
    ends, sent, added = map(seconds.__getitem__, schedules)
    messages = SENT * schedules[0].chunks
    return Costs(ends / 2, max(0.0, sent - ends) / messages, max(0.0, added - sent) / messages)
