"""Consecutive layers on one device: forward, and backward with recomputation.

Only the input of each layer is kept between the two passes. So what a device keeps is seen, and
what it needs from other devices can be asked for.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, TypeVar

from frameworks.strategies.primitives import Params, Primitives, Tensor

R = TypeVar("R")
T = TypeVar("T", Tensor, Params)
"""A tensor, or several by their names."""

partial = functools.cache(functools.partial)
"""The same object for the same arguments: a compiler would compile every other one again."""


def on_each_device(function: Callable[..., R], *arguments: Iterable[Any], **same: Any) -> list[R]:
    """The results of `function` for the arguments of each device, one after the other."""
    return [function(*local, **same) for local in zip(*arguments, strict=True)]


def layer_params(name: str, params: Mapping[str, Tensor]) -> Params:
    """The weight and the bias of a layer, as far as a device has them."""
    return {key: params[key] for key in (f"{name}.weight", f"{name}.bias") if key in params}


def forward(
    layer: Callable[..., Tensor], names: Sequence[str], params: Mapping[str, Tensor], X: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """The output of consecutive layers for `X`, and the input of each layer."""
    inputs = []
    for name in names:
        inputs.append(X)
        X = layer(name, X, params)
    return X, inputs


def backward(
    layer: Callable[..., Tensor],
    vjp: Callable[..., Any],
    names: Sequence[str],
    params: Mapping[str, Tensor],
    inputs: Sequence[Tensor],
    grad: Tensor,
) -> tuple[Tensor, Params]:
    """The gradients of the first input and of the parameters, given the output's gradient."""
    grads: Params = {}
    for name, X in zip(reversed(names), reversed(inputs), strict=True):
        grad, layer_grads = vjp(partial(layer, name), X, layer_params(name, params), grad)
        grads |= layer_grads
    return grad, grads


def accumulate(ops: Primitives, grads: MutableMapping[str, Tensor], further: Params) -> None:
    """Adds further gradients to those that there are, by name."""
    if grads.keys() >= further.keys():
        further = ops.add({name: grads[name] for name in further}, further)
    grads.update(further)


def add(one: T, other: T) -> T:
    """The sum of two tensors, or of two dictionaries of tensors by name."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: one[name] + tensor for name, tensor in other.items()}
    return one + other


def sgd_step(
    params: Params, velocities: Params, grads: Params, lr: float, momentum: float
) -> tuple[Params, Params]:
    """Updated parameters and velocities: v = momentum v + grad, w = w - lr v."""
    velocities = {name: momentum * velocities[name] + grads[name] for name in params}
    return {name: param - lr * velocities[name] for name, param in params.items()}, velocities
