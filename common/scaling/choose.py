"""Chooses how to split a net: the fastest plans that fit the memory of a device."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Final

from common.base.errors import RunError
from common.parallel.nets import RECOMPUTE
from common.parallel.pipelines import IN_FLIGHT
from common.parallel.strategies import STRATEGIES
from common.scaling.scenario import Scenario
from common.scaling.steps import Seconds
from common.terminal.values import MICROBATCHES

SEARCHED: Final = ("strategy", "replicas", "microbatches", "schedule", "recompute")

Choice = tuple[Scenario, Seconds, int]
"""A plan, its time, and the bytes that its fullest device keeps."""


def choose(scenario: Scenario, memory: float) -> list[Choice]:
    """The fastest plan of each strategy and number of replicas that fits, the fastest first.

    Of plans as fast, the one with the fewest microbatches counts. Raises RunError if none
    fits `memory`, in bytes.
    """
    tight: list[Choice] = []
    fitting: dict[tuple[str, int], Choice] = {}
    timed = [(plan, plan.seconds()) for plan in candidates(scenario)]
    for plan, seconds in sorted(timed, key=lambda pair: pair[1].step):
        if (plan.strategy, plan.replicas) not in fitting:
            tight.append((plan, seconds, kept(plan)))
            if tight[-1][2] <= memory:
                fitting[plan.strategy, plan.replicas] = tight[-1]
    if not tight:
        what = "no plan has whole sequences on every device"
        raise RunError(f"{what}: ask for --examples that are a multiple of --sequence")
    if not fitting:
        plan, _, least = min(tight, key=lambda choice: choice[2])
        words = ", ".join(f"{name} {getattr(plan, name)}" for name in SEARCHED)
        more = f"{least / 1e9:,.3g} GB, {(least - memory) / 1e9:,.3g} GB more"
        raise RunError(f"no plan fits {memory / 1e9:,.3g} GB: the smallest ({words}) keeps {more}")
    return list(fitting.values())


def candidates(scenario: Scenario) -> Iterator[Scenario]:
    """All plans; those of a transformer have equally many whole sequences in each microbatch.

    Of other nets, with 1, 2, 4 and so on microbatches.
    """
    blocks, devices = scenario.network().blocks, scenario.devices
    sequence = blocks.sequence if blocks else 1
    groups = [group for group in range(1, devices + 1) if devices % group == 0]
    for (name, strategy), group in product(STRATEGIES.items(), groups):
        chosen = replace(scenario, strategy=name, replicas=devices // group)
        if (group == 1) != (name == "data") or chosen.refusal():
            continue
        shards = devices if strategy.sharded else devices // group
        size, rest = divmod(scenario.examples, shards * sequence)
        counts = range(1, min(size, MICROBATCHES) + 1)
        if blocks:
            times = [m for m in counts if rest == size % m == 0]
        else:
            times = [m for m in counts if m.bit_count() == 1]
        # Of schedules as fast, 1F1B keeps the least.
        schedules = [*IN_FLIGHT][::-1] if name == "pipeline" else ["1f1b"]
        for m, order, again in product(times, schedules, RECOMPUTE if blocks else ("none",)):
            yield replace(chosen, microbatches=m, schedule=order, recompute=again)


def kept(scenario: Scenario) -> int:
    """The bytes that the fullest device keeps; except for pipelines, it is the first one."""
    plan = scenario.plan()
    here = plan.rows_of(scenario.examples)[0].stop
    stages = range(plan.devices if plan.strategy == "pipeline" else 1)
    return max(sum(plan.memory(here, stage, *scenario.sizes()).values()) for stage in stages)
