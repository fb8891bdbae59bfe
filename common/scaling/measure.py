"""Measures latency and bandwidth between virtual devices, and whole allreduces to compare with.

Messages and additions are timed through the same `by_schedule` that does the allreduces, but by
schedules that are no allreduce.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

import numpy as np

from common.backends.loading import distributions, one_thread_each
from common.base.machine import describe_machine, now
from common.chapters.operations import matrix_rate
from common.parallel.schedules import SCHEDULES
from common.records.fingerprint import versions
from common.scaling.predict import fit, predict
from common.scaling.results import LIMITS, Compared, Costs, Measured, Probe, piece
from common.scaling.workloads import Allreduce, Call, Laboratory, Timed, Trial, laboratory

ROUNDS: Final = range(3, 25)
"""Rounds of timing, after one to warm up: at least the start of the range, fewer than its stop."""

SWEEPS: Final = 4
"""How many times a round goes through all calls that are not long.

So what slows the machine for a moment meets each call only once.
"""

QUARTILE: Final = 0.25
"""The share of a call's times that are below the one that counts.

Other programs only add time. A short call may escape them all, but a long one cannot. So the least
of many times would make the parts of an allreduce cheaper than the whole.
"""

BUDGET: Final = 42.0
"""The seconds that all this may take, importing and compiling included."""


def measure(framework: str, threads: int, sizes: Sequence[int]) -> Measured:
    """Times messages, additions, and allreduces of vectors of `sizes` entries."""
    deadline = time.perf_counter() + BUDGET
    threads = 1 if one_thread_each(framework) else threads
    lab = laboratory(framework, threads)
    seconds = timed(lab, lab.calls(sizes), deadline)
    probes = probes_of(seconds)
    costs = fit(probes)
    found = [
        compared(costs, key, taken) for key, taken in seconds.items() if isinstance(key, Allreduce)
    ]
    return described(framework, threads, probes, costs, found)


def probes_of(seconds: Mapping[Timed, float]) -> list[Probe]:
    """What the constants come from, of all that was timed."""
    return [
        Probe(**key._asdict(), seconds=taken)
        for key, taken in seconds.items()
        if isinstance(key, Trial)
    ]


def described(
    framework: str, threads: int, probes: list[Probe], costs: Costs, found: list[Compared]
) -> Measured:
    """What was measured, with the machine, and what has made the numbers."""
    names = distributions(framework)
    return Measured(
        framework=framework,
        threads=threads,
        created=now(),
        machine=describe_machine(),
        versions={
            name: found for name, found in versions(("numpy", *names)).items() if found != "none"
        },
        probes=probes,
        costs=costs,
        compared=found,
        product_rate=matrix_rate(),
        copy_rate=copy_rate(),
    )


def timed(lab: Laboratory, calls: Mapping[Timed, Call], deadline: float) -> dict[Timed, float]:
    """The seconds of every call: the lower quartile of all rounds, as QUARTILE says."""
    for call in calls.values():
        lab.once(call)  # compiles
    warm = time.perf_counter()
    found: dict[Timed, list[float]] = {key: [] for key in calls}
    for number in range(1, ROUNDS.stop):
        for sweep, (key, call) in product(range(SWEEPS), calls.items()):
            if piece(key.entries) < len(LIMITS):
                found[key].append(min(lab.once(call), lab.once(call)))  # the caches are cold first
            elif sweep == 0:
                found[key].append(lab.once(call))
        end = time.perf_counter()
        if number >= ROUNDS.start and end + (end - warm) / number > deadline:
            break
    return {key: quartile(taken) for key, taken in found.items()}


def quartile(taken: Sequence[float]) -> float:
    """The time that counts."""
    return float(np.quantile(taken, QUARTILE))


def compared(costs: Costs, call: Allreduce, measured: float) -> Compared:
    """An allreduce as it was measured and, from the constants alone, predicted."""
    predicted = None
    if call.algorithm in SCHEDULES:
        predicted = predict(costs, SCHEDULES[call.algorithm](call.devices), call.entries)
    return Compared(**call._asdict(), measured=measured, predicted=predicted)


def copy_rate(size: int = 2**24) -> float:
    """Bytes per second that NumPy copies from memory to memory: the best of three."""
    source, target = np.ones(size, np.float32), np.ones(size, np.float32)
    best = np.inf
    for _ in range(3):
        begun = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - begun)
    return float(source.nbytes / best)
