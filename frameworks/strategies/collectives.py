"""Collectives over the devices of a group. All of them move tensors by `send`, which counts."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from common.models.nets import Shapes
from common.parallel.ledger import Group
from frameworks.strategies.primitives import Params, Primitives

T = TypeVar("T")
"""A tensor, or several by their names."""


def send(ops: Primitives, tensors: T, source: int, target: int, kind: str, group: Group) -> T:
    """A copy on another device of the group; each tensor is a message, none to the same device."""
    if source == target:
        return tensors
    for tensor in tensors.values() if isinstance(tensors, dict) else [tensors]:
        group.message(tensor, source, target, kind)
    return ops.copy_to(tensors, group.devices[target])


def allreduce(
    ops: Primitives,
    tensors: Sequence[T],
    kind: str,
    group: Group,
    combine: Callable[[T, T], T] | None = None,
) -> list[T]:
    """The sum over the devices of a group, on each: the first one adds up, or combines."""
    combine, total = combine or ops.add, tensors[0]
    for source in range(1, len(tensors)):
        total = combine(total, send(ops, tensors[source], source, 0, kind, group))
    return [send(ops, total, 0, target, kind, group) for target in range(len(tensors))]


def reduce_scatter(
    ops: Primitives, tensors: Sequence[Params], kind: str, group: Group
) -> list[Params]:
    """A flat slice of the sum of each tensor for each device, which adds it up."""
    slices = [ops.split(params, len(tensors)) for params in tensors]
    totals = []
    for target in range(len(tensors)):
        total = send(ops, slices[0][target], 0, target, kind, group)
        for source in range(1, len(tensors)):
            total = ops.add(total, send(ops, slices[source][target], source, target, kind, group))
        totals.append(total)
    return totals


def all_gather(
    ops: Primitives, slices: Sequence[Params], shapes: Shapes, kind: str, group: Group
) -> list[Params]:
    """The whole tensors on each device, from the slices of all of them."""
    gathered = []
    for target in range(len(slices)):
        parts = [send(ops, part, source, target, kind, group) for source, part in enumerate(slices)]
        gathered.append(ops.concat(parts, shapes))
    return gathered
