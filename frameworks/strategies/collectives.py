"""Collectives over the devices of a group. All of them move tensors by `send`, which counts."""

from collections.abc import Callable, MutableMapping, Sequence
from functools import reduce
from typing import TypeVar

from common.parallel.ledger import Group
from frameworks.strategies.primitives import Primitives, Tensor

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


def allreduce_in_place(
    ops: Primitives,
    held: Sequence[MutableMapping[str, Tensor]],
    kind: str,
    group: Group,
    names: Sequence[str] = (),
) -> None:
    """Replaces tensors of each device, all or those of these names, by their sums."""
    local = [{name: here[name] for name in names or here} for here in held]
    for here, sums in zip(held, allreduce(ops, local, kind, group), strict=True):
        here.update(sums)


def all_to_all(
    ops: Primitives, parts: Sequence[Sequence[T]], kind: str, group: Group
) -> list[list[T]]:
    """What each device gets: of every device, the part for it, `parts[source][target]`."""
    return [
        [send(ops, here[target], source, target, kind, group) for source, here in enumerate(parts)]
        for target in range(len(parts))
    ]


def reduce_scatter(
    ops: Primitives, parts: Sequence[Sequence[T]], kind: str, group: Group
) -> list[T]:
    """The sum of all parts for a device, which adds them up."""
    return [reduce(ops.add, got) for got in all_to_all(ops, parts, kind, group)]


def all_gather(ops: Primitives, parts: Sequence[T], kind: str, group: Group) -> list[list[T]]:
    """The parts of all devices, on each."""
    return all_to_all(ops, [[part] * len(parts) for part in parts], kind, group)
