"""The cluster that is simulated, and a training step of every net on it."""

import argparse
from typing import Final

from common.base.errors import RequestError
from common.chapters.operations import EFFICIENCY
from common.scaling.formulas import FORMULAS, ITEM
from common.scaling.results import Constant, Constants, Line, Measured, Step
from common.scaling.training_step import COUNTS, Net, nets, timing

IMPLAUSIBLE: Final = 1e12
"""Bytes per second that no processor moves: what looks so fast was not moved."""

LEAST: Final = 1e-6
MOST: Final = 1e12
"""What a flag may say."""


def as_measured(measured: Measured) -> Constants:
    """A cluster of what was measured here: latency of short messages, bandwidth of long ones."""
    costs = measured.costs
    source = f"measured: {EFFICIENCY:.0%} of a matrix product's"
    return Constants(
        latency=Constant(value=max(costs.message.short.fixed, 1e-9), source="measured"),
        bandwidth=_bytes_per_second(costs.message.long, measured),
        addition=_bytes_per_second(costs.addition.long, measured),
        rate=Constant(value=EFFICIENCY * measured.product_rate, source=source),
    )


def given(flags: argparse.Namespace) -> dict[str, Constant]:
    """What the flags say of a link and a device, by the names of `Constants`.

    They are in microseconds, GB/s and billions of operations per second. Raises RequestError for
    what no network and no device is near.
    """
    units = {"latency": 1e-6, "bandwidth": 1e9, "addition": 1e9, "rate": 1e9}
    found = {name: getattr(flags, name) for name in units if getattr(flags, name) is not None}
    for name, value in found.items():
        if not LEAST <= value <= MOST:
            raise RequestError(f"--{name} {value:g}: choose from {LEAST:g} to {MOST:g}")
    return {
        name: Constant(value=value * units[name], source="given") for name, value in found.items()
    }


def _bytes_per_second(line: Line, measured: Measured) -> Constant:
    """The rate that a line says; where it says none, because nothing was moved, that of a copy."""
    if line.per_entry * IMPLAUSIBLE > ITEM:
        return Constant(value=ITEM / line.per_entry, source="measured")
    source = f"measured: NumPy's copy; {measured.framework} took no time for a byte"
    return Constant(value=measured.copy_rate, source=source)


def simulate(cluster: Constants) -> list[Step]:
    """A step of every net on 2, 4, 8, ... 4,096 devices, by every algorithm."""
    return [
        step(net, k, algorithm, cluster) for net in nets() for k in COUNTS for algorithm in FORMULAS
    ]


def step(net: Net, k: int, algorithm: str, cluster: Constants) -> Step:
    """One step, without and with overlap."""
    taken = timing(net, algorithm, k, cluster.link(), cluster.rate.value)
    return Step(
        net=net.name,
        devices=k,
        algorithm=algorithm,
        allreduce=sum(taken.allreduces),
        apart=taken.apart(),
        overlapped=taken.overlapped(),
    )
