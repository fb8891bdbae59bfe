"""The plan of each strategy. `frameworks/strategies` carries it out, in a file of the same name."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from common.parallel.nets import Net
from common.parallel.plans import Plan
from common.parallel.strategies import data, pipeline, tensor, zero

STRATEGIES: Final[Mapping[str, type[Plan]]] = {
    "data": data.Data,
    "pipeline": pipeline.Pipeline,
    "tensor": tensor.Tensor,
    "zero1": zero.Zero1,
    "zero2": zero.Zero2,
    "zero3": zero.Zero3,
}
"""The strategies by name; the first is the default."""


def split(net: Net, strategy: str, devices: int, replicas: int = 1, **how: Any) -> Plan:
    """The plan by which `devices` in all train a net; `how`: further fields of a plan."""
    replicas = devices if strategy == "data" else replicas
    layers = {each.name: getattr(net, each.name) for each in fields(Net)}
    made, group = STRATEGIES[strategy], devices // replicas
    return made(**layers, strategy=strategy, devices=group, replicas=replicas, **how)


def refusal(net: Net, strategy: str, devices: int, replicas: int = 1) -> str:
    """Why there is no such plan; empty if there is one."""
    group, rest = divmod(devices, replicas)
    if strategy != "data" and rest:
        groups = f"{replicas} groups of one size"
        return f"{groups} take a multiple of {replicas} devices, not {devices}"
    return STRATEGIES[strategy].refusal(net, group)
