"""The primitives of `frameworks/strategies`, in PyTorch."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from common.base.arrays import Array
from common.models.nets import Shapes
from common.parallel.shards import shard_sizes
from frameworks.pytorch.kernels import avg_pool2d, conv2d, dense, images, on_each_device, relu
from frameworks.pytorch.scratch import loss
from frameworks.strategies import layers
from frameworks.strategies.layers import add, partial, sgd_step

__all__ = ["add", "on_each_device", "partial", "sgd_step"]

Device = torch.device
Params = dict[str, Tensor]

T = TypeVar("T", Tensor, Params)
"""A tensor, or several by their names."""


def place(values: Array, device: Device) -> Tensor:
    """A copy of a host array on a device."""
    return torch.from_numpy(values).to(device, copy=True)


def copy_to(tensors: T, device: Device) -> T:
    """A copy of a tensor, or of a dictionary of tensors, on another device."""
    if isinstance(tensors, dict):
        return {name: tensor.to(device, copy=True) for name, tensor in tensors.items()}
    return tensors.to(device, copy=True)


def layer(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a layer for `X`, with its activation and pooling."""
    weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(conv2d(images(X) if name == "conv1" else X, weight, bias)))
    return dense(X, weight, bias) if name == "fc2" else relu(dense(X, weight, bias))


def product(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The partial sum of a row-parallel layer for some input channels, without its bias."""
    weight = params[f"{name}.weight"]
    if name.startswith("conv"):
        return conv2d(X, weight, weight.new_zeros(len(weight)))
    return dense(X, weight, weight.new_zeros(weight.shape[1]))


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
    X = X.detach().requires_grad_()
    leaves = {name: param.detach().requires_grad_() for name, param in params.items()}
    with torch.enable_grad():
        Y = function(X, leaves)
    input_grad, *grads = torch.autograd.grad(Y, [X, *leaves.values()], grad)
    return input_grad, dict(zip(leaves, grads, strict=True))


forward = partial(layers.forward, layer)
backward = partial(layers.backward, layer, vjp)


def loss_and_grad(logits: Tensor, y: Tensor, examples: int) -> tuple[Tensor, Tensor]:
    """The sum of the losses divided by all `examples`, and its gradient by the logits."""
    logits = logits.detach().requires_grad_()
    with torch.enable_grad():
        part = loss(logits, y).sum() / examples
    (grad,) = torch.autograd.grad(part, [logits])
    return part.detach(), grad


def split(tensors: Params, devices: int) -> list[Params]:
    """The slices of flattened tensors, one for each device; sizes differ by at most one."""
    slices = {
        name: tensor.flatten().split(shard_sizes(tensor.numel(), devices))
        for name, tensor in tensors.items()
    }
    return [{name: flat[i] for name, flat in slices.items()} for i in range(devices)]


def concat(slices: Sequence[Params], shapes: Shapes) -> Params:
    """The tensors of these shapes: the inverse of `split`."""
    return {k: torch.cat([part[k] for part in slices]).reshape(shapes[k]) for k in slices[0]}
