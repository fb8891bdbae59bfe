"""The primitives of `frameworks/strategies`, in JAX: each function on tensors is one program."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias, TypeVar

import jax
from jax import Array as Tensor, numpy as jnp

from common.base.arrays import Array
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


add = jax.jit(layers.add)
maximum = jax.jit(jnp.maximum)


def cut(tensor: Tensor, sizes: Sequence[int], axis: int) -> list[Tensor]:
    """The parts of a tensor, which have these sizes along an axis."""
    parts: list[Tensor] = split(tensor, tuple(accumulate(sizes))[:-1], axis)
    return parts


split = jax.jit(jnp.split, static_argnums=(1, 2))
join = jax.jit(jnp.concatenate, static_argnums=1)
reshape = jax.jit(jnp.reshape, static_argnums=1)
squares = jax.jit(partial(layers.squares, jnp.sum))
clip = jax.jit(partial(layers.clip, jnp.clip))
adam_step = jax.jit(layers.adam_step)
sgd_step = jax.jit(layers.sgd_step)
