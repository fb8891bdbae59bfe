"""Chooses how to split a transformer: the fastest meshes that fit the memory of a device."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf
from typing import Any, Final

from common.base.errors import RunError
from common.parallel.nets import RECOMPUTE
from common.scaling.cluster import with_prefix
from common.scaling.scenario import MESH, Scenario
from common.scaling.steps import Seconds
from common.terminal.command import MICROBATCHES

SEARCHED: Final = (*MESH, "strategy", "replicas", "microbatches", "recompute")

Choice = tuple[Scenario, Seconds, int]
"""A plan, its time, and the bytes that its fullest device keeps."""


def choose(scenario: Scenario, memory: float) -> list[Choice]:
    """The fastest plan of each strategy, tensor and pipeline degree that fits, fastest first.

    Of plans as fast, the one with the fewest microbatches counts. Raises RunError if none
    fits `memory`, in bytes.
    """
    least = inf
    fitting: dict[tuple[str, int, int], Choice] = {}
    timed = [(plan, plan.seconds()) for plan in candidates(scenario)]
    for plan, seconds in sorted(timed, key=lambda pair: pair[1].step):
        if (key := (plan.strategy, plan.tensor, plan.pipeline)) not in fitting:
            least = min(least, kept := max(plan.kept()))
            if kept <= memory:
                fitting[key] = plan, seconds, kept
    if not timed:
        what = "no plan has whole sequences on every device"
        raise RunError(f"{what}: ask for --examples that are a multiple of --sequence")
    if not fitting:
        fits = f"no plan fits {with_prefix(memory, 'B')}"
        raise RunError(f"{fits}: the smallest keeps {with_prefix(least, 'B')}")
    return list(fitting.values())


def candidates(scenario: Scenario) -> Iterator[Scenario]:
    """All meshes of a transformer with equally many whole sequences in each microbatch.

    Tensor parallelism stays in a node. So do shards, unless there is one replica.
    """
    net, devices, node = scenario.network(), scenario.devices, scenario.node
    sequences, rest = divmod(scenario.examples, net.blocks.sequence)
    scores = scenario.attention == "scores"
    recompute = [again for again in RECOMPUTE if scores or again != "selective"]
    for t, p, z in product(divisors(devices), repeat=3):
        replicas, uneven = divmod(devices, t * p * z)
        count, left = divmod(sequences, z * max(1, replicas))
        if uneven or rest or left or net.blocks.heads % t or p > len(net.units):
            continue
        if t > node or (t * z > node and replicas > 1):
            continue
        names = ["zero1", "zero2", "zero3"] if z > 1 else ["data"]
        spread = [False, True] if devices > node and 1 < p < devices // t else [False]
        for m in divisors(count):
            chunks = (1, 2, 4, 8) if p > 1 and m % p == 0 else (1,)
            for c, s, name, again in product(chunks, spread, names, recompute):
                how = zip(SEARCHED, (t, p, z, c, s, name, replicas, m, again), strict=True)
                plan = replace(scenario, **dict[str, Any](how))
                if not plan.refusal():
                    yield plan


def divisors(number: int) -> list[int]:
    return [n for n in range(1, min(number, MICROBATCHES) + 1) if number % n == 0]
