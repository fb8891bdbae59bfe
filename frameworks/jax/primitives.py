"""The primitives of `frameworks/strategies`, in JAX: each function on tensors is one program."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias, TypeVar

import jax
from jax import Array as Tensor, numpy as jnp

from common.base.arrays import Array
from common.models.nets import Shapes
from common.parallel.shards import shard_bounds
from frameworks.strategies import layers
from frameworks.strategies.layers import on_each_device, partial
from frameworks.strategies.primitives import Layer

__all__ = ["on_each_device"]

Device: TypeAlias = jax.Device
Params = dict[str, Tensor]

R = TypeVar("R")
T = TypeVar("T", Tensor, Params)
"""A tensor, or several by their names."""


def place(values: Array, device: Device) -> Tensor:
    """A copy of a host array on a device."""
    # On a CPU, device_put by itself would share the memory of the array.
    placed: Tensor = jax.device_put(values.copy(), device)
    return placed


def copy_to(tensors: T, device: Device) -> T:
    """A copy of a tensor, or of a dictionary of tensors, on another device."""
    copied: T = jax.device_put(tensors, device)
    return copied


@partial(jax.jit, static_argnums=(0, 4))
def vjp(
    function: Callable[[Tensor, Params], Tensor],
    X: Tensor,
    params: Mapping[str, Tensor],
    grad: Tensor,
    half: str = "",
) -> tuple[Tensor, Params]:
    """The vector-Jacobian product: gradients of `X` and `params`, given the output's gradient."""
    _, pullback = jax.vjp(function, X, params)
    input_grad, grads = pullback(grad)
    # The compiler leaves out what is not returned.
    return (X if half == "weights" else input_grad), ({} if half == "input" else grads)


def one_program(function: Callable[..., R]) -> Callable[..., R]:
    """The function compiled as a whole: once for the same `layer` and `names`, which come first."""
    compiled = jax.jit(function, static_argnums=(0, 1))

    def call(layer: Layer, names: Sequence[str], params: Mapping[str, Tensor], *others: Any) -> R:
        result: R = compiled(layer, tuple(names), dict(params), *others)
        return result

    return call


forward = one_program(layers.forward)
backward = one_program(partial(layers.backward, vjp))


@partial(jax.jit, static_argnums=0)
def loss_and_grad(
    loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, y: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """The sum of the losses divided by `count`, and its gradient by the logits."""

    def part(logits: Tensor) -> Tensor:
        return loss(logits, y).sum() / count

    return jax.value_and_grad(part)(logits)


@jax.jit
def add(one: T, other: T) -> T:
    """The sum of two tensors, or of two dictionaries of tensors by name."""
    total: T = jax.tree.map(jnp.add, one, other)
    return total


maximum = jax.jit(jnp.maximum)


def cut(tensor: Tensor, sizes: Sequence[int], axis: int) -> list[Tensor]:
    """The parts of a tensor, which have these sizes along an axis."""
    return jnp.split(tensor, list(accumulate(sizes))[:-1], axis)


join = jax.jit(jnp.concatenate, static_argnums=1)


@jax.jit
def squares(tensors: Params) -> Tensor:
    """The sum of the squares of all numbers."""
    return jnp.stack([jnp.square(tensor).sum() for tensor in tensors.values()]).sum()


@jax.jit
def clip(tensors: Params, squares: Tensor, most: float) -> Params:
    """Tensors of which all squares add up to `squares`, scaled to a norm of `most` at most."""
    scale = most / jnp.sqrt(squares).clip(min=most)
    return {name: scale * tensor for name, tensor in tensors.items()}


@partial(jax.jit, static_argnums=1)
def split(tensors: Params, devices: int) -> list[Params]:
    """The slices of flattened tensors, one for each device; sizes differ by at most one."""
    bounds = {name: shard_bounds(tensor.size, devices) for name, tensor in tensors.items()}
    return [
        {name: tensor.ravel()[slice(*bounds[name][i])] for name, tensor in tensors.items()}
        for i in range(devices)
    ]


def concat(slices: Sequence[Params], shapes: Shapes) -> Params:
    """The tensors of these shapes: the inverse of `split`."""
    whole: Params = joined(slices, tuple((name, shapes[name]) for name in slices[0]))
    return whole


@partial(jax.jit, static_argnums=1)
def joined(slices: Sequence[Params], shapes: Sequence[tuple[str, Sequence[int]]]) -> Params:
    """The same, with shapes that are hashable, as a compiled program's must be."""
    return {
        name: jnp.concatenate([part[name] for part in slices]).reshape(shape)
        for name, shape in shapes
    }


adam_step = jax.jit(layers.adam_step)
sgd_step = jax.jit(layers.sgd_step)
