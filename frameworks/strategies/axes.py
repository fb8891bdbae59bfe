"""Messages between a replica's devices: along axes of tensors, and round a ring."""

from collections.abc import Sequence

from frameworks.strategies import collectives
from frameworks.strategies.primitives import Tensor
from frameworks.strategies.replica import Replica


def all_gather(replica: Replica, values: Sequence[Tensor], axis: int, kind: str) -> list[Tensor]:
    """On each device, the parts of all, joined along an axis."""
    gathered = collectives.all_gather(replica.ops, values, kind, replica.group)
    return [replica.ops.join(parts, axis) for parts in gathered]


def reduce_scatter(
    replica: Replica, values: Sequence[Tensor], sizes: Sequence[int], axis: int, kind: str
) -> list[Tensor]:
    """The sum of devices' tensors, of which each has a part, of these sizes along an axis."""
    parts = [replica.ops.cut(here, sizes, axis) for here in values]
    return collectives.reduce_scatter(replica.ops, parts, kind, replica.group)


def all_to_all(
    replica: Replica,
    values: Sequence[Tensor],
    sizes: Sequence[int],
    axes: tuple[int, int],
    kind: str,
) -> list[Tensor]:
    """Each device gets a part of every device's tensor, cut along one axis, joined along another.

    The parts along the first of the `axes` have these sizes.
    """
    cut, join = axes
    parts = [replica.ops.cut(here, sizes, cut) for here in values]
    received = collectives.all_to_all(replica.ops, parts, kind, replica.group)
    return [replica.ops.join(got, join) for got in received]


def passed_on(replica: Replica, values: Sequence[Tensor], kind: str) -> list[Tensor]:
    """What the device before has sent."""
    ops, group, n = replica.ops, replica.group, len(values)
    ends = [((i - 1) % n, i) for i in range(n)]
    return [collectives.send(ops, values[a], a, b, kind, group) for a, b in ends]
