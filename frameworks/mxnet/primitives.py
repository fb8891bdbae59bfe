"""The primitives of `frameworks/strategies`, in MXNet."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TypeAlias, TypeVar

import mxnet as mx
from mxnet import autograd, np

from common.base.arrays import Array
from common.models.nets import Shapes
from common.parallel.shards import shard_bounds
from frameworks.mxnet.collectives import join
from frameworks.mxnet.kernels import avg_pool2d, conv2d, dense, on_each_device, padded, relu
from frameworks.mxnet.scratch import loss
from frameworks.strategies import layers
from frameworks.strategies.layers import add, partial, sgd_step

__all__ = ["add", "on_each_device", "partial", "sgd_step"]

Device: TypeAlias = mx.Context
Tensor: TypeAlias = np.ndarray
Params = dict[str, Tensor]

T = TypeVar("T", Tensor, Params)
"""A tensor, or several by their names."""

Layer = Callable[[str, Tensor, Mapping[str, Tensor]], Tensor]


def place(values: Array, device: Device) -> Tensor:
    """A copy of a host array on a device."""
    return np.array(values, values.dtype, ctx=device)


def copy_to(tensors: T, device: Device) -> T:
    """A copy of a tensor, or of a dictionary of tensors, on another device."""
    if isinstance(tensors, dict):
        return {name: tensor.copyto(device) for name, tensor in tensors.items()}
    return tensors.copyto(device)


def with_empty_batches(function: Layer) -> Layer:
    """The function, also for no examples: MXNet cannot convolve an empty batch."""

    @wraps(function)
    def with_empty_batches(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
        if len(X):
            return function(name, X, params)
        return function(name, np.zeros((1, *X.shape[1:]), X.dtype, ctx=X.ctx), params)[:0]

    return with_empty_batches


def padded_conv2d(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`conv2d` of `X` with as many more channels of zeros as it wants."""
    channels = X.shape[1]
    X = padded(X, len(X), 3 if channels <= 3 else -(-channels // 8) * 8, *X.shape[2:])
    return conv2d(X, weight, bias)


def first(Y: Tensor, channels: int) -> Tensor:
    """The first channels of `Y` (n, channels, rows, columns): devices keep and send no others."""
    # `Y[:, :channels]` fails: oneDNN cuts channels only at multiples of 8.
    cut = mx.nd.slice_axis(Y.as_nd_ndarray(), axis=1, begin=0, end=channels)
    return cut.as_np_ndarray()


@with_empty_batches
def layer(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a layer for `X`, with its activation and pooling."""
    weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
    if name.startswith("conv"):
        return first(avg_pool2d(relu(padded_conv2d(X, weight, bias))), len(bias))
    return dense(X, weight, bias) if name == "fc2" else relu(dense(X, weight, bias))


@with_empty_batches
def product(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The partial sum of a row-parallel layer for some input channels, without its bias."""
    weight = params[f"{name}.weight"]
    outputs = len(weight) if name.startswith("conv") else weight.shape[1]
    zeros = np.zeros(outputs, weight.dtype, ctx=weight.ctx)
    if name.startswith("conv"):
        return first(padded_conv2d(X, weight, zeros), outputs)
    return dense(X, weight, zeros)


@with_empty_batches
def finish(name: str, Y: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a row-parallel layer from the sum over devices; the bias is added once."""
    bias = params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(Y + bias[:, None, None]))
    return Y + bias if name == "fc2" else relu(Y + bias)


def vjp(
    function: Callable[[Tensor, Params], Tensor],
    X: Tensor,
    params: Mapping[str, Tensor],
    grad: Tensor,
) -> tuple[Tensor, Params]:
    """The vector-Jacobian product: gradients of `X` and `params`, given the output's gradient."""
    if len(X) == 0:  # MXNet cannot convolve an empty batch
        return X, {name: np.zeros_like(param) for name, param in params.items()}
    X, copies = X.detach(), {name: param.detach() for name, param in params.items()}
    leaves = [X, *copies.values()]
    # `grad` writes to none of the attached gradients.
    autograd.mark_variables(leaves, [leaf.detach() for leaf in leaves])
    with autograd.record():
        Y = function(X, copies)
    input_grad, *grads = (g.as_np_ndarray() for g in autograd.grad(Y, leaves, grad))
    return input_grad, dict(zip(copies, grads, strict=True))


forward = partial(layers.forward, layer)
backward = partial(layers.backward, layer, vjp)


def loss_and_grad(logits: Tensor, y: Tensor, examples: int) -> tuple[Tensor, Tensor]:
    """The sum of the losses divided by all `examples`, and its gradient by the logits."""
    if len(logits) == 0:  # MXNet cannot sum an empty batch
        return np.zeros((), logits.dtype, ctx=logits.ctx), logits
    logits = logits.detach()
    logits.attach_grad()
    with autograd.record():
        part = loss(logits, y).sum() / examples
    part.backward()
    return part.detach(), logits.grad


def split(tensors: Params, devices: int) -> list[Params]:
    """The slices of flattened tensors, one for each device; sizes differ by at most one."""
    flat = {name: tensor.reshape_view(-1) for name, tensor in tensors.items()}
    bounds = {name: shard_bounds(tensor.size, devices) for name, tensor in flat.items()}
    return [
        {name: tensor[slice(*bounds[name][i])] for name, tensor in flat.items()}
        for i in range(devices)
    ]


def concat(slices: Sequence[Params], shapes: Shapes) -> Params:
    """The tensors of these shapes: the inverse of `split`."""
    return {k: join([part[k] for part in slices]).reshape_view(shapes[k]) for k in slices[0]}
