"""How tensors get from device to device, in JAX: all go by `send`, which counts them."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import jax
from jax import Array as Tensor

from common.base.arrays import Array
from common.parallel.ledger import Group
from common.parallel.shards import shard_bounds
from frameworks.jax.collectives import cut, put_together

Device: TypeAlias = jax.Device
Params = dict[str, Tensor]

partial = functools.cache(functools.partial)
"""The same object for the same arguments. JAX compiles a program again for every other one."""


def place(values: Array, device: Device) -> Tensor:
    """A copy of an array of the host on a device."""
    # On a CPU, device_put alone would go on using the memory of the array.
    return jax.device_put(values.copy(), device)


def send(tensor: Tensor, source: int, target: int, kind: str, group: Group) -> Tensor:
    """A copy of a tensor on another device of the group; to the same one, nothing is sent."""
    if source == target:
        return tensor
    group.message(tensor, source, target, kind)
    return jax.device_put(tensor, group.devices[target])


@partial(jax.jit, static_argnums=0)
def vjp(
    function: Callable[[Tensor, Params], Tensor],
    X: Tensor,
    params: Mapping[str, Tensor],
    grad: Tensor,
) -> tuple[Tensor, Params]:
    """The gradients of `X` and `params`, from that of `function(X, params)`.

    That is a vector-Jacobian product. The function is computed once more for it.
    """
    _, back = jax.vjp(function, X, params)
    found, grads = back(grad)
    return found, grads


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
    bounds = tuple(shard_bounds(tensors[0].size, len(tensors)))
    slices = [cut(tensor, bounds) for tensor in tensors]
    totals = []
    for target in range(len(tensors)):
        total = send(slices[0][target], 0, target, kind, group)
        for source in range(1, len(tensors)):
            total = total + send(slices[source][target], source, target, kind, group)
        totals.append(total)
    return totals


def all_gather(
    slices: Sequence[Tensor], shape: Sequence[int], kind: str, group: Group
) -> list[Tensor]:
    """The whole tensor on each device, from the slices of all of them."""
    found = []
    for target in range(len(slices)):
        parts = [send(part, source, target, kind, group) for source, part in enumerate(slices)]
        found.append(put_together(parts, tuple(shape)))
    return found
