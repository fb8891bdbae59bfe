"""Measures messages, additions and allreduces of virtual devices, and predicts the latter."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from common.backends.devices import DeviceRequest, Process
from common.backends.loading import distributions, import_backend, one_thread_each
from common.base.machine import describe_machine, now
from common.chapters.data_parallel import FromScratch
from common.chapters.scratch import ALLREDUCES
from common.parallel.schedules import SCHEDULES, Schedule, Transfer
from common.parallel.shards import shard_sizes
from common.records.fingerprint import versions

COUNTS: Final = (2, 3, 4)
"""The numbers of devices of the allreduces that are timed."""

CHUNKS: Final = (1, 2, 3, 4)
"""The numbers of chunks, of which cutting and joining are timed."""

LONG: Final = 2**20
"""The entries beyond which a vector, of 4.2 MB, is timed once a round."""

ROUNDS: Final = range(3, 25)
"""Rounds of timing, after one to warm up."""

SWEEPS: Final = 4
"""How often a round times what is not long."""

QUARTILE: Final = 0.25
"""The quantile of a call's times that counts: the least would favour short calls over long ones."""

BUDGET: Final = 42.0
"""The seconds that all this may take, importing and compiling included."""

Call = Callable[[], Sequence[Any]]


class Trial(NamedTuple):
    """Two devices cut and join a vector; in between, they send one vector to and fro."""

    entries: int
    chunks: int
    messages: int = 0
    adds: bool = False

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
class Costs:
    """Seconds for vectors of some numbers of `entries`, in ascending order.

    `cut` has those of a device that cuts its vector into 1, 2, 3 and 4 chunks and joins them.
    """

    entries: list[int]
    message: list[float]
    addition: list[float]
    cut: list[list[float]]

    def of(self, seconds: Sequence[float], entries: int) -> float:
        """One of these costs for any number of entries: interpolated."""
        return float(np.interp(entries, self.entries, seconds))


@dataclass(frozen=True)
class Compared:
    """One allreduce as it was measured and, if it has a schedule, as it was predicted."""

    entries: int
    devices: int
    algorithm: str
    measured: float
    predicted: float | None


@dataclass(frozen=True)
class Measured:
    """One measurement: where it was made, the costs and all allreduces. Times are in seconds."""

    framework: str
    threads: int
    created: str
    machine: dict[str, str | int]
    versions: dict[str, str]
    costs: Costs
    compared: list[Compared]


@dataclass(frozen=True)
class Laboratory:
    """A framework with its virtual devices."""

    chapter: FromScratch
    devices: Sequence[Any]

    def calls(self, sizes: Sequence[int]) -> dict[Timed, Call]:
        """The calls that are timed: messages of 1 entry and of all chunks, and allreduces."""
        parts = {max(1, size // chunks) for size in sizes for chunks in CHUNKS}
        calls: dict[Timed, Call] = {}
        for entries in sorted({1} | parts):
            calls |= self.trials(entries)
        for entries in sizes:
            vectors = self.vectors(max(COUNTS), entries)
            for k, name in product(COUNTS, ALLREDUCES):
                calls[Allreduce(entries, k, name)] = self.allreduce(name, k, vectors[:k])
        return calls

    def trials(self, entries: int) -> dict[Timed, Call]:
        """The trials of one length, and the calls that carry them out."""
        pair, by_schedule = self.vectors(2, entries), self.chapter.collectives.by_schedule
        return {each: partial(by_schedule, each.schedule(), pair) for each in trials(entries)}

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


def trials(entries: int) -> list[Trial]:
    """The trials of one length; short messages are sent more often."""
    messages = 8 if entries <= LONG // 2 else 2
    ends = [Trial(entries, chunks) for chunks in CHUNKS]
    return ends + [Trial(entries, 1, messages, adds) for adds in (False, True)]


def measure(framework: str, threads: int, sizes: Sequence[int]) -> Measured:
    """Times messages, additions, and allreduces of vectors of `sizes` entries.

    Raises RequestError if the framework is not installed.
    """
    deadline = time.perf_counter() + BUDGET
    threads = 1 if one_thread_each(framework) else threads
    chapter: Any = import_backend(framework, "scratch", threads)
    # TensorFlow would warn that it compiles its collective again for each size.
    logging.getLogger(framework).setLevel(logging.ERROR)
    devices = chapter.devices(Process(), DeviceRequest(max(COUNTS), "cpu", threads))
    lab = Laboratory(chapter, devices.local)
    seconds = timed(lab, lab.calls(sizes), deadline)
    costs = costs_of(seconds)
    known = versions(("numpy", *distributions(framework)))
    return Measured(
        framework=framework,
        threads=threads,
        created=now(),
        machine=describe_machine(),
        versions={name: version for name, version in known.items() if version != "none"},
        costs=costs,
        compared=[
            Compared(*key, measured=taken, predicted=predicted(costs, key))
            for key, taken in seconds.items()
            if isinstance(key, Allreduce)
        ],
    )


def timed(lab: Laboratory, calls: Mapping[Timed, Call], deadline: float) -> dict[Timed, float]:
    """The seconds of every call: the lower quartile of all rounds, as QUARTILE says."""
    for call in calls.values():
        lab.once(call)  # compiles
    warm = time.perf_counter()
    found: dict[Timed, list[float]] = {key: [] for key in calls}
    for number in range(1, ROUNDS.stop):
        for sweep, (key, call) in product(range(SWEEPS), calls.items()):
            if key.entries <= LONG:
                found[key].append(min(lab.once(call), lab.once(call)))  # the caches are cold first
            elif sweep == 0:
                found[key].append(lab.once(call))
        end = time.perf_counter()
        if number >= ROUNDS.start and end + (end - warm) / number > deadline:
            break
    return {key: float(np.quantile(taken, QUARTILE)) for key, taken in found.items()}


def costs_of(seconds: Mapping[Timed, float]) -> Costs:
    """The costs by the times of trials: differences between two kinds of calls, at least 0."""
    found = [key for key in seconds if isinstance(key, Trial) and key.messages]
    entries = sorted({key.entries for key in found})
    message, addition = [], []
    for moved, added in (sorted(key for key in found if key.entries == n) for n in entries):
        ends = seconds[Trial(moved.entries, 1)]
        message.append(max(0.0, seconds[moved] - ends) / moved.messages)
        addition.append(max(0.0, seconds[added] - seconds[moved]) / moved.messages)
    cut = [[seconds[Trial(n, chunks)] / 2 for n in entries] for chunks in CHUNKS]
    return Costs(entries, message, addition, cut)


def predicted(costs: Costs, call: Allreduce) -> float | None:
    """The seconds of an allreduce by the costs of its parts; None if it has no schedule."""
    if call.algorithm not in SCHEDULES:
        return None
    return predict(costs, SCHEDULES[call.algorithm](call.devices), call.entries)


def predict(costs: Costs, schedule: Schedule, entries: int) -> float:
    """The seconds of all messages and additions, one after the other, and of cutting and joining.

    Virtual devices share one processor. Each chunk is a message of its own.
    """
    sizes = shard_sizes(entries, schedule.chunks)
    total = schedule.devices * costs.of(costs.cut[schedule.chunks - 1], entries)
    for transfer in (transfer for one in schedule.rounds for transfer in one):
        for size in (sizes[chunk] for chunk in transfer.chunks):
            total += costs.of(costs.message, size)
            total += costs.of(costs.addition, size) if transfer.adds else 0
    return total
