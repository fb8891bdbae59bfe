"""Measures messages and additions between virtual devices, and whole allreduces.

Messages and additions are timed through the same `by_schedule` that carries out the allreduces, by
schedules that are no allreduce.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

import numpy as np

from common.backends.loading import distributions, one_thread_each
from common.base.machine import describe_machine, now
from common.parallel.schedules import SCHEDULES
from common.records.fingerprint import versions
from common.scaling.predict import fit, predict
from common.scaling.results import LIMITS, Compared, Costs, Measured, Probe, piece
from common.scaling.workloads import Allreduce, Call, Laboratory, Timed, Trial, laboratory

ROUNDS: Final = range(3, 25)
"""Rounds of timing, after one to warm up: at least the start of the range, fewer than its stop."""

SWEEPS: Final = 4
"""How often a round times what is not long: what slows the machine for a moment hits one sweep."""

QUARTILE: Final = 0.25
"""The quantile of a call's times that counts.

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
    trials = {key: taken for key, taken in seconds.items() if isinstance(key, Trial)}
    costs = fit([Probe(**key._asdict(), seconds=taken) for key, taken in trials.items()])
    known = versions(("numpy", *distributions(framework)))
    return Measured(
        framework=framework,
        threads=threads,
        created=now(),
        machine=describe_machine(),
        versions={name: version for name, version in known.items() if version != "none"},
        costs=costs,
        compared=[
            Compared(**key._asdict(), measured=taken, predicted=predicted(costs, key))
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
            if piece(key.entries) < len(LIMITS):
                found[key].append(min(lab.once(call), lab.once(call)))  # the caches are cold first
            elif sweep == 0:
                found[key].append(lab.once(call))
        end = time.perf_counter()
        if number >= ROUNDS.start and end + (end - warm) / number > deadline:
            break
    return {key: float(np.quantile(taken, QUARTILE)) for key, taken in found.items()}


def predicted(costs: Costs, call: Allreduce) -> float | None:
    """The seconds of an allreduce, predicted from the constants; None without a schedule."""
    if call.algorithm not in SCHEDULES:
        return None
    return predict(costs, SCHEDULES[call.algorithm](call.devices), call.entries)
