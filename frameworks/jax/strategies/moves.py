"""How tensors get from device to device, in JAX: all go by `send`, which counts them.

What is done with tensors of several names is one program for them all, of which there are a few
then, and not a few for each name. Each of them is a message of its own all the same.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import jax
from jax import Array as Tensor, numpy as jnp

from common.base.arrays import Array
from common.models.nets import Shapes
from common.parallel.ledger import Group
from common.parallel.shards import shard_bounds

Device: TypeAlias = jax.Device
Params = dict[str, Tensor]

R = TypeVar("R")
T = TypeVar("T", Tensor, Params)
"""A tensor, or several by their names."""

partial = functools.cache(functools.partial)
"""The same object for the same arguments. JAX compiles a program again for every other one."""


def on_each_device(function: Callable[..., R], *arguments: Iterable[Any], **same: Any) -> list[R]:
    """What `function` makes of each device's arguments, and of what is the `same` for all.

    Each device has a program of its own. That of the first chapter is compiled once for several,
    but a call takes 0.3 ms, where this takes 0.02 a device: here are ten calls a step.
    """
    return [function(*own, **same) for own in zip(*arguments, strict=True)]


def place(values: Array, device: Device) -> Tensor:
    """A copy of an array of the host on a device."""
    # On a CPU, device_put alone would go on using the memory of the array.
    placed: Tensor = jax.device_put(values.copy(), device)
    return placed


def send(tensors: T, source: int, target: int, kind: str, group: Group) -> T:
    """A copy on another device of the group, each tensor a message; to the same one, nothing goes.

    `tensors` is one tensor, or several by their names.
    """
    if source == target:
        return tensors
    for each in jax.tree.leaves(tensors):
        group.message(each, source, target, kind)
    sent: T = jax.device_put(tensors, group.devices[target])
    return sent


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
    named = tuple((name, shapes[name]) for name in slices[0])
    for target in range(len(slices)):
        parts = [send(part, source, target, kind, group) for source, part in enumerate(slices)]
        found.append(put_together(parts, named))
    return found


@jax.jit
def plus(one: T, other: T) -> T:
    """The sum of two tensors, or of those of each name."""
    total: T = jax.tree.map(jnp.add, one, other)
    return total


@partial(jax.jit, static_argnums=1)
def cut(tensors: Params, devices: int) -> list[Params]:
    """The slices of tensors, each in one row, for so many devices."""
    bounds = {name: shard_bounds(tensor.size, devices) for name, tensor in tensors.items()}
    return [
        {name: tensor.ravel()[slice(*bounds[name][i])] for name, tensor in tensors.items()}
        for i in range(devices)
    ]


@partial(jax.jit, static_argnums=1)
def put_together(parts: Sequence[Params], shapes: Sequence[tuple[str, Sequence[int]]]) -> Params:
    """The inverse of `cut`."""
    return {
        name: jnp.concatenate([part[name] for part in parts]).reshape(shape)
        for name, shape in shapes
    }
