"""How tensors get from device to device, in MXNet: all go by `send`, which counts them."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import mxnet as mx
from mxnet import autograd, np

from common.base.arrays import Array
from common.parallel.ledger import Group
from common.parallel.shards import shard_bounds
from frameworks.mxnet.collectives import join

Device: TypeAlias = mx.Context
Tensor: TypeAlias = np.ndarray
Params = dict[str, Tensor]


def place(values: Array, device: Device) -> Tensor:
    """A copy of an array of the host on a device."""
    return np.array(values, values.dtype, ctx=device)


def send(tensor: Tensor, source: int, target: int, kind: str, group: Group) -> Tensor:
    """A copy of a tensor on another device of the group; to the same one, nothing is sent."""
    if source == target:
        return tensor
    group.message(tensor, source, target, kind)
    return tensor.copyto(group.devices[target])


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
    # Other names of the same numbers, with gradients that no other call writes to.
    X, own = X.detach(), {name: param.detach() for name, param in params.items()}
    for leaf in (X, *own.values()):
        leaf.attach_grad()
    with autograd.record():
        Y = function(X, own)
    Y.backward(grad)
    return X.grad, {name: leaf.grad for name, leaf in own.items()}


def allreduce(tensors: Sequence[Tensor], kind: str, group: Group) -> list[Tensor]:
    """The sum of tensors that lie on all devices of a group, on each of them.

    The first device adds them up, as in the first chapter.
    """
    total = tensors[0]
    for device, tensor in enumerate(tensors[1:], start=1):
        total = total + send(tensor, device, 0, kind, group)
    return [send(total, 0, device, kind, group) for device in range(len(tensors))]


def reduce_scatter(tensors: Sequence[Tensor], kind: str, group: Group) -> list[Tensor]:
    """A slice of the sum of tensors, in one row, for each device: each adds up its own."""
    bounds = shard_bounds(tensors[0].size, len(tensors))
    rows = [tensor.reshape(-1) for tensor in tensors]
    totals = []
    for target, (a, b) in enumerate(bounds):
        total = send(rows[0][a:b], 0, target, kind, group)
        for source in range(1, len(tensors)):
            total = total + send(rows[source][a:b], source, target, kind, group)
        totals.append(total)
    return totals


def all_gather(
    slices: Sequence[Tensor], shape: Sequence[int], kind: str, group: Group
) -> list[Tensor]:
    """The whole tensor on each device, from the slices of all of them."""
    found = []
    for target in range(len(slices)):
        parts = [send(part, source, target, kind, group) for source, part in enumerate(slices)]
        found.append(join(parts).reshape(tuple(shape)))
    return found
