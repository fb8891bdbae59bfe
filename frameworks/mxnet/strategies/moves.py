"""How tensors get from device to device, in MXNet: all go by `send`, which counts them."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import mxnet as mx
from mxnet import autograd, np

from common.base.arrays import Array
from common.models.nets import Shapes
from common.parallel.ledger import Group
from common.parallel.shards import shard_bounds
from frameworks.mxnet.collectives import join

Device: TypeAlias = mx.Context
Tensor: TypeAlias = np.ndarray
Params = dict[str, Tensor]

T = TypeVar("T", Tensor, Params)
"""A tensor, or several by their names."""


def place(values: Array, device: Device) -> Tensor:
    """A copy of an array of the host on a device."""
    return np.array(values, values.dtype, ctx=device)


def send(tensors: T, source: int, target: int, kind: str, group: Group) -> T:
    """A copy on another device of the group, each tensor a message; to the same one, nothing goes.

    `tensors` is one tensor, or several by their names.
    """
    if source == target:
        return tensors
    if isinstance(tensors, dict):
        return {k: send(each, source, target, kind, group) for k, each in tensors.items()}
    group.message(tensors, source, target, kind)
    return tensors.copyto(group.devices[target])


def vjp(
    function: Callable[[Tensor, Params], Tensor],
    X: Tensor,
    params: Mapping[str, Tensor],
    grad: Tensor,
) -> tuple[Tensor, Params]:
    """The gradients of `X` and `params`, from that of `function(X, params)`.

    That is a vector-Jacobian product. The function is computed once more for it.
    """
    if len(X) == 0:  # MXNet cannot convolve nothing
        return X, {name: np.zeros_like(param) for name, param in params.items()}
    X, own = X.detach(), {name: param.detach() for name, param in params.items()}
    leaves = [X, *own.values()]
    # With `grad`, nothing is written to what is named as the place of gradients.
    autograd.mark_variables(leaves, [leaf.detach() for leaf in leaves])
    with autograd.record():
        Y = function(X, own)
    found, *grads = (each.as_np_ndarray() for each in autograd.grad(Y, leaves, grad))
    return found, dict(zip(own, grads, strict=True))


def allreduce(tensors: Sequence[T], kind: str, group: Group) -> list[T]:
    """The sum of what lies on all devices of a group, on each of them.

    The first device adds it up, as in the first chapter.
    """
    total = tensors[0]
    for device, each in enumerate(tensors[1:], start=1):
        total = plus(total, send(each, device, 0, kind, group))
    return [send(total, 0, device, kind, group) for device in range(len(tensors))]


def reduce_scatter(tensors: Sequence[Params], kind: str, group: Group) -> list[Params]:
    """A slice of the sum of each tensor, in one row, for each device: each adds up its own."""
    slices = [cut(each, len(tensors)) for each in tensors]
    totals = []
    for target in range(len(tensors)):
        total = send(slices[0][target], 0, target, kind, group)
        for source in range(1, len(tensors)):
            total = plus(total, send(slices[source][target], source, target, kind, group))
        totals.append(total)
    return totals


def all_gather(slices: Sequence[Params], shapes: Shapes, kind: str, group: Group) -> list[Params]:
    """The whole tensors on each device, from the slices of all of them."""
    found = []
    for target in range(len(slices)):
        parts = [send(part, source, target, kind, group) for source, part in enumerate(slices)]
        found.append(put_together(parts, shapes))
    return found


def plus(one: T, other: T) -> T:
    """The sum of two tensors, or of those of each name."""
    if isinstance(one, dict):
        return {name: one[name] + each for name, each in other.items()}
    return one + other


def cut(tensors: Params, devices: int) -> list[Params]:
    """The slices of tensors, each in one row, for so many devices."""
    rows = {name: tensor.reshape_view(-1) for name, tensor in tensors.items()}
    bounds = {name: shard_bounds(row.size, devices) for name, row in rows.items()}
    return [
        {name: row[slice(*bounds[name][i])] for name, row in rows.items()} for i in range(devices)
    ]


def put_together(parts: Sequence[Params], shapes: Shapes) -> Params:
    """The inverse of `cut`."""
    return {k: join([part[k] for part in parts]).reshape_view(shapes[k]) for k in parts[0]}
