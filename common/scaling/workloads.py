"""What is timed: calls on virtual devices of one framework, and the clock."""

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

CUTS: Final = (1, 2, 3, 4)
"""Into how many chunks their schedules cut a vector."""

Call = Callable[[], Sequence[Any]]


class Trial(NamedTuple):
    """No allreduce: devices cut and join a vector; between that, two send one to and fro."""

    entries: int
    chunks: int
    messages: int
    adds: bool

    def schedule(self, devices: int = 2) -> Schedule:
        """The whole vector from the first device to the second and back, and so on."""
        ways = ((number % 2, 1 - number % 2) for number in range(self.messages))
        rounds = tuple((Transfer(a, b, range(self.chunks), self.adds),) for a, b in ways)
        return Schedule(devices, self.chunks, rounds)


class Allreduce(NamedTuple):
    """An allreduce of vectors of that many entries, by name."""

    entries: int
    devices: int
    algorithm: str


class Step(NamedTuple):
    """A training step of a net with that many parameters; without an algorithm it only computes."""

    entries: int
    algorithm: str


Timed = Trial | Allreduce | Step


@dataclass(frozen=True)
class Laboratory:
    """A framework with its virtual devices.

    `devices` are those of this process; `counts` says among how many, its own and others', sums are
    timed. If there are others, it is one number: no process is left out. `names` are the allreduces
    that are timed.
    """

    chapter: FromScratch
    devices: Sequence[Any]
    counts: Sequence[int] = COUNTS
    names: Sequence[str] = tuple(ALLREDUCES)

    def calls(self, sizes: Sequence[int]) -> dict[Timed, Call]:
        """All that is timed, by what it is."""
        made: dict[Timed, Call] = {}
        few, most = min(self.counts), max(self.counts)
        by_schedule = self.chapter.collectives.by_schedule
        for entries in grid(sizes):
            some = self.vectors(few, entries)
            for trial in trials(entries):
                made[trial] = partial(by_schedule, trial.schedule(few), some)
        for entries in sizes:
            vectors = self.vectors(most, entries)
            for k, name in product(self.counts, self.names):
                made[Allreduce(entries, k, name)] = self.allreduce(name, k, vectors[:k])
        return made

    def vectors(self, k: int, entries: int) -> list[Any]:
        """A vector of that many float32 numbers on each of the first k devices that are here."""
        values = np.ones(k * entries, np.float32)
        return self.chapter.kernels.scatter(values, self.devices[:k])

    def allreduce(self, name: str, k: int, vectors: Sequence[Any]) -> Call:
        """The call that sums vectors on k devices, of which these are here."""
        collectives = self.chapter.collectives
        if name not in SCHEDULES:
            return partial(collectives.native, vectors)
        return partial(collectives.by_schedule, SCHEDULES[name](k), vectors)

    def once(self, call: Call) -> float:
        """How long a call takes this time, all its work included."""
        begun = time.perf_counter()
        self.chapter.synchronize([{"vector": vector} for vector in call()])
        return time.perf_counter() - begun


def laboratory(framework: str, threads: int) -> Laboratory:
    """The framework, with as many virtual devices as are timed. Raises RequestError without it."""
    chapter: Any = import_backend(framework, "scratch", threads)
    # TensorFlow would warn that it compiles its collective again for each size.
    logging.getLogger(framework).setLevel(logging.ERROR)
    devices = chapter.devices(Process(), DeviceRequest(max(COUNTS), "cpu", threads))
    return Laboratory(chapter, devices.local)


def grid(sizes: Sequence[int]) -> list[int]:
    """The sizes of single messages that are timed, in entries: from one number to whole vectors."""
    parts = {max(1, size // chunks) for size in sizes for chunks in (1, 2, 4)}
    between = {size for size in (2**12, 2**19) if size < max(sizes)}
    return sorted({1} | between | parts)


def trials(entries: int) -> list[Trial]:
    """What is timed for one size: short messages are sent more often."""
    messages = 8 if entries <= 2**19 else 2
    ends = [Trial(entries, chunks, 0, False) for chunks in CUTS]
    return ends + [Trial(entries, 1, messages, adds) for adds in (False, True)]
