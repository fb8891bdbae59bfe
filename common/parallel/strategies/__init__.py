"""The plan of each strategy; `frameworks/strategies` carries it out."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from common.parallel.nets import Net
from common.parallel.plans import Plan
from common.parallel.strategies import context, data, expert, pipeline, sequence, tensor, zero

STRATEGIES: Final[Mapping[str, type[Plan]]] = {
    "data": data.Data,
    "pipeline": pipeline.Pipeline,
    "tensor": tensor.Tensor,
    "zero1": zero.Zero1,
    "zero2": zero.Zero2,
    "zero3": zero.Zero3,
    "context": context.Context,
}
"""The strategies by name; the first is the default."""

OF_EXPERTS: Final[Mapping[str, type[Plan]]] = {"data": expert.Expert, "expert": expert.Expert}
"""Those of a mixture of experts: data parallelism is expert parallelism in groups of one device."""

OF_ANY_NET: Final = [name for name in STRATEGIES if name != "context"]


def plan_of(strategy: str, sequence_parallel: bool = False, experts: bool = False) -> type[Plan]:
    """The plans of a strategy."""
    if experts:
        return OF_EXPERTS[strategy]
    return sequence.SequenceParallel if sequence_parallel else STRATEGIES[strategy]


def split(net: Net, strategy: str, devices: int, replicas: int = 1, **how: Any) -> Plan:
    """The plan by which `devices` in all train a net; `how`: further fields of a plan."""
    replicas = devices if strategy == "data" else replicas
    how |= {field.name: getattr(net, field.name) for field in fields(Net)}
    how |= {"strategy": strategy, "devices": devices // replicas, "replicas": replicas}
    return plan_of(strategy, how.pop("sequence_parallel", False), net.experts is not None)(**how)


def refusal(net: Net, strategy: str, devices: int, replicas: int = 1, **how: Any) -> str:
    """Why there is no such plan; empty if there is one."""
    group, rest = divmod(devices, replicas)
    if strategy != "data" and rest:
        groups = f"{replicas} groups of one size"
        return f"{groups} take a multiple of {replicas} devices, not {devices}"
    plan = plan_of(strategy, how.get("sequence_parallel", False), net.experts is not None)
    return plan.refusal(net, group, **how)
