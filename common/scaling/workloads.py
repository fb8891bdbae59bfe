"""The calls that are timed, on virtual devices of one framework, and the clock."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from common.backends.devices import DeviceRequest, Process
from common.backends.loading import import_backend
from common.chapters.data_parallel import FromScratch
from common.chapters.scratch import ALLREDUCES
from common.parallel.schedules import SCHEDULES, Schedule, Transfer

COUNTS: Final = (2, 3, 4)
"""The numbers of devices whose allreduces are timed."""

Call = Callable[[], Sequence[Any]]


class Trial(NamedTuple):
    """Two devices cut and join a vector; in between, they send one vector to and fro."""

    entries: int
    chunks: int
    messages: int
    adds: bool

    def schedule(self) -> Schedule:
        """The whole vector from the first device to the second and back, and so on."""
        ways = ((number % 2, 1 - number % 2) for number in range(self.messages))
        rounds = tuple((Transfer(a, b, range(self.chunks), self.adds),) for a, b in ways)
        return Schedule(2, self.chunks, rounds)


class Allreduce(NamedTuple):
    """An allreduce of vectors of that many entries, by name."""

    entries: int
    devices: int
    algorithm: str


Timed = Trial | Allreduce


@dataclass(frozen=True)
class Laboratory:
    """A framework with its virtual devices."""

    chapter: FromScratch
    devices: Sequence[Any]

    def calls(self, sizes: Sequence[int]) -> dict[Timed, Call]:
        """All calls that are timed for vectors of these numbers of entries."""
        calls: dict[Timed, Call] = {}
        by_schedule = self.chapter.collectives.by_schedule
        for entries in grid(sizes):
            pair = self.vectors(2, entries)
            for trial in trials(entries):
                calls[trial] = partial(by_schedule, trial.schedule(), pair)
        for entries in sizes:
            vectors = self.vectors(max(COUNTS), entries)
            for k, name in product(COUNTS, ALLREDUCES):
                calls[Allreduce(entries, k, name)] = self.allreduce(name, k, vectors[:k])
        return calls

    def vectors(self, k: int, entries: int) -> list[Any]:
        """A vector of that many float32 numbers on each of the first k devices."""
        values = np.ones(k * entries, np.float32)
        return self.chapter.kernels.scatter(values, self.devices[:k])

    def allreduce(self, name: str, k: int, vectors: Sequence[Any]) -> Call:
        """The call that sums the vectors of k devices."""
        collectives = self.chapter.collectives
        if name not in SCHEDULES:
            return partial(collectives.native, vectors)
        return partial(collectives.by_schedule, SCHEDULES[name](k), vectors)

    def once(self, call: Call) -> float:
        """The seconds that one call takes, all its queued work included."""
        begun = time.perf_counter()
        self.chapter.synchronize([{"vector": vector} for vector in call()])
        return time.perf_counter() - begun


def laboratory(framework: str, threads: int) -> Laboratory:
    """A framework with four virtual devices. Raises RequestError if it is not installed."""
    chapter: Any = import_backend(framework, "scratch", threads)
    # TensorFlow would warn that it compiles its collective again for each size.
    logging.getLogger(framework).setLevel(logging.ERROR)
    devices = chapter.devices(Process(), DeviceRequest(max(COUNTS), "cpu", threads))
    return Laboratory(chapter, devices.local)


def grid(sizes: Sequence[int]) -> list[int]:
    """The entries of the single messages that are timed: from 1 to whole vectors."""
    parts = {max(1, size // chunks) for size in sizes for chunks in (1, 2, 4)}
    between = {size for size in (2**12, 2**19) if size < max(sizes)}
    return sorted({1} | between | parts)


def trials(entries: int) -> list[Trial]:
    """The trials of one size; short messages are sent more often."""
    messages = 8 if entries <= 2**19 else 2
    ends = [Trial(entries, chunks, 0, False) for chunks in range(1, 1 + max(COUNTS))]
    return ends + [Trial(entries, 1, messages, adds) for adds in (False, True)]
