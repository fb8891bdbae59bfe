"""The primitives of `frameworks/strategies`, in MXNet."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import accumulate, pairwise
from typing import Any, TypeAlias, TypeVar, cast

import mxnet as mx
from mxnet import autograd, np

from common.base.arrays import Array
from frameworks.mxnet.collectives import join as join_vectors
from frameworks.mxnet.kernels import on_each_device
from frameworks.strategies import layers
from frameworks.strategies.layers import adam_step, add, forward, partial, sgd_step

__all__ = ["adam_step", "add", "forward", "on_each_device", "partial", "sgd_step"]

Device: TypeAlias = mx.Context
Tensor: TypeAlias = np.ndarray
Params = dict[str, Tensor]

T = TypeVar("T", Tensor, Params)
"""A tensor, or several by their names."""

F = TypeVar("F", bound=Callable[..., Any])


def place(values: Array, device: Device) -> Tensor:
    """A copy of a host array on a device."""
    return np.array(values, values.dtype, ctx=device)


def copy_to(tensors: T, device: Device) -> T:
    """A copy of a tensor, or of a dictionary of tensors, on another device."""
    if isinstance(tensors, dict):
        return {name: tensor.copyto(device) for name, tensor in tensors.items()}
    return tensors.copyto(device)


def with_empty_batches(function: F) -> F:
    """The function of tensors, also for no examples: MXNet can neither convolve nor add up none."""

    @wraps(function)
    def with_empty_batches(*arguments: Any) -> Any:
        if all(len(each) for each in arguments if isinstance(each, np.ndarray)):
            return function(*arguments)
        results = function(*map(one_example, arguments))
        return results[:0] if isinstance(results, np.ndarray) else [each[:0] for each in results]

    return cast(F, with_empty_batches)


def sums_of_empty_batches(function: F) -> F:
    """The function of tensors that adds up what is 0 for an example of zeros, also for none."""

    @wraps(function)
    def sums_of_empty_batches(*arguments: Any, **same: Any) -> Any:
        return function(*map(one_example, arguments), **same)

    return cast(F, sums_of_empty_batches)


def one_example(argument: Any) -> Any:
    """An empty batch with an example of zeros; anything else as it is."""
    if isinstance(argument, dict):
        return {name: one_example(tensor) for name, tensor in argument.items()}
    if not isinstance(argument, np.ndarray) or len(argument):
        return argument
    return np.zeros((1, *argument.shape[1:]), argument.dtype, ctx=argument.ctx)


def vjp(
    function: Callable[[Tensor, Params], Tensor],
    X: Tensor,
    params: Mapping[str, Tensor],
    grad: Tensor,
    half: str = "",
) -> tuple[Tensor, Params]:
    """The vector-Jacobian product: gradients of `X` and `params`, given the output's gradient."""
    if len(X) == 0:  # MXNet cannot convolve an empty batch
        return X, {name: np.zeros_like(param) for name, param in params.items()}
    X, copies = X.detach(), {name: param.detach() for name, param in params.items()}
    inputs = [] if half == "weights" else [X]
    leaves = [*inputs, *({} if half == "input" else copies).values()]
    # `grad` writes to none of the attached gradients.
    autograd.mark_variables(leaves, [leaf.detach() for leaf in leaves])
    with autograd.record():
        Y = function(X, copies)
    grads = [g.as_np_ndarray() for g in autograd.grad(Y, leaves, grad)]
    input_grad = grads.pop(0) if inputs else X
    return input_grad, dict(zip(copies, grads, strict=half != "input"))


backward = partial(layers.backward, vjp)


def loss_and_grad(
    loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, y: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """The sum of the losses divided by `count`, and its gradient by the logits."""
    if len(logits) == 0:  # MXNet cannot sum an empty batch
        return np.zeros((), logits.dtype, ctx=logits.ctx), logits
    logits = logits.detach()
    logits.attach_grad()
    with autograd.record():
        part = loss(logits, y).sum() / count
    part.backward()
    return part.detach(), logits.grad


maximum = np.maximum


def cut(tensor: Tensor, sizes: Sequence[int], axis: int) -> list[Tensor]:
    """The parts of a tensor, which have these sizes along an axis."""
    # By slices, because np.split moves one number after the other.
    before = (slice(None),) * (axis % tensor.ndim)
    bounds = pairwise(accumulate(sizes, initial=0))
    return [tensor[(*before, slice(a, b))] for a, b in bounds]


def join(parts: Sequence[Tensor], axis: int) -> Tensor:
    """The tensor that has these parts along an axis: the inverse of `cut`."""
    return join_vectors(parts) if parts[0].ndim == 1 else np.concatenate(parts, axis)


reshape = np.ndarray.reshape_view
squares = partial(layers.squares, np.sum)
clip = partial(layers.clip, np.maximum)
