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
    """The parameters of a layer, as far as a device has them."""
    return {key: tensor for key, tensor in params.items() if key.startswith(f"{name}.")}


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
    vjp: Callable[..., Any],
    layer: Callable[..., Tensor],
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


def squares(total: Callable[[Tensor], Tensor], tensors: Params) -> Tensor:
    """The sum of the squares of all numbers; `total` adds up a tensor's."""
    return sum(total(tensor * tensor) for tensor in tensors.values())


def clip(
    at_least: Callable[[Tensor, float], Tensor], tensors: Params, squares: Tensor, most: float
) -> Params:
    """Tensors of which all squares add up to `squares`, scaled to a norm of `most` at most."""
    scale = most / at_least(squares**0.5, most)
    return {name: scale * tensor for name, tensor in tensors.items()}


BETAS, TINY = (0.9, 0.999), 1e-8
"""Of Adam, as in PyTorch and Optax by default."""


def adam_step(
    params: Params, moments: Params, grads: Params, lr: float, unbiased: Sequence[float]
) -> tuple[Params, Params]:
    """Updated parameters and moments, by Adam (Kingma and Ba, 2015).

    m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g², w = w - lr m' / (sqrt(v') + 1e-8), where m' and
    v' are divided by `unbiased`: 1 - b1^t and 1 - b2^t in step t.
    """
    updated, after = {}, {}
    for name, grad in grads.items():
        m, v = moments[f"momentum/{name}"], moments[f"variance/{name}"]
        m = BETAS[0] * m + (1 - BETAS[0]) * grad
        v = BETAS[1] * v + (1 - BETAS[1]) * grad * grad
        root = (v / unbiased[1]) ** 0.5
        updated[name] = params[name] - lr * (m / unbiased[0]) / (root + TINY)
        after |= {f"momentum/{name}": m, f"variance/{name}": v}
    return updated, after


def sgd_step(
    params: Params, velocities: Params, grads: Params, lr: float, momentum: float
) -> tuple[Params, Params]:
    """Updated parameters and velocities: v = momentum v + grad, w = w - lr v."""
    after = {name: momentum * velocities[f"momentum/{name}"] + grads[name] for name in params}
    updated = {name: param - lr * after[name] for name, param in params.items()}
    return updated, {f"momentum/{name}": velocity for name, velocity in after.items()}
