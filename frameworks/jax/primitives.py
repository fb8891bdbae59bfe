"""The primitives of `frameworks/strategies`, in JAX: each function on tensors is one program."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import jax
from jax import Array as Tensor, numpy as jnp

from common.base.arrays import Array
from common.models.nets import Shapes
from common.parallel.shards import shard_bounds
from frameworks.jax.kernels import avg_pool2d, conv2d, dense, images, relu
from frameworks.jax.scratch import loss
from frameworks.strategies import layers
from frameworks.strategies.layers import on_each_device, partial

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


@partial(jax.jit, static_argnums=0)
def layer(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a layer for `X`, with its activation and pooling."""
    weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(conv2d(images(X) if name == "conv1" else X, weight, bias)))
    return dense(X, weight, bias) if name == "fc2" else relu(dense(X, weight, bias))


@partial(jax.jit, static_argnums=0)
def product(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The partial sum of a row-parallel layer for some input channels, without its bias."""
    weight = params[f"{name}.weight"]
    if name.startswith("conv"):
        return conv2d(X, weight, jnp.zeros(len(weight), weight.dtype))
    return dense(X, weight, jnp.zeros(weight.shape[1], weight.dtype))


@partial(jax.jit, static_argnums=0)
def finish(name: str, Y: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a row-parallel layer from the sum over devices; the bias is added once."""
    bias = params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(Y + bias[:, None, None, None]))
    return Y + bias if name == "fc2" else relu(Y + bias)


@partial(jax.jit, static_argnums=0)
def vjp(
    function: Callable[[Tensor, Params], Tensor],
    X: Tensor,
    params: Mapping[str, Tensor],
    grad: Tensor,
) -> tuple[Tensor, Params]:
    """The vector-Jacobian product: gradients of `X` and `params`, given the output's gradient."""
    _, pullback = jax.vjp(function, X, params)
    input_grad, grads = pullback(grad)
    return input_grad, grads


def one_program(function: Callable[..., R]) -> Callable[..., R]:
    """The function compiled as a whole: once for the same `names`, which come first."""
    compiled = jax.jit(function, static_argnums=0)

    def call(names: Sequence[str], params: Mapping[str, Tensor], *others: Any) -> R:
        result: R = compiled(tuple(names), dict(params), *others)
        return result

    return call


forward = one_program(partial(layers.forward, layer))
backward = one_program(partial(layers.backward, layer, vjp))


@jax.jit
def loss_and_grad(logits: Tensor, y: Tensor, examples: int) -> tuple[Tensor, Tensor]:
    """The sum of the losses divided by all `examples`, and its gradient by the logits."""

    def part(logits: Tensor) -> Tensor:
        return loss(logits, y).sum() / examples

    return jax.value_and_grad(part)(logits)


@jax.jit
def add(one: T, other: T) -> T:
    """The sum of two tensors, or of two dictionaries of tensors by name."""
    total: T = jax.tree.map(jnp.add, one, other)
    return total


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


sgd_step = jax.jit(layers.sgd_step)
