"""The primitives of `frameworks/strategies`, in PyTorch."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor

from common.base.arrays import Array
from frameworks.pytorch.kernels import on_each_device
from frameworks.strategies import layers
from frameworks.strategies.layers import adam_step, add, forward, partial, sgd_step

__all__ = ["adam_step", "add", "forward", "on_each_device", "partial", "sgd_step"]

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


def vjp(
    function: Callable[[Tensor, Params], Tensor],
    X: Tensor,
    params: Mapping[str, Tensor],
    grad: Tensor,
    half: str = "",
) -> tuple[Tensor, Params]:
    """The vector-Jacobian product: gradients of `X` and `params`, given the output's gradient."""
    through = X.is_floating_point() and half != "weights"  # tokens have no gradient
    X, every = X.detach().requires_grad_(through), half != "input"
    leaves = {name: param.detach().requires_grad_(every) for name, param in params.items()}
    with torch.enable_grad():
        Y = function(X, leaves)
    wanted = [leaf for leaf in (X, *leaves.values()) if leaf.requires_grad]
    grads = torch.autograd.grad(Y, wanted, grad)
    return grads[0], dict(zip(leaves, grads[through:], strict=every))


backward = partial(layers.backward, vjp)


def loss_and_grad(
    loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, y: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """The sum of the losses divided by `count`, and its gradient by the logits."""
    logits = logits.detach().requires_grad_()
    with torch.enable_grad():
        part = loss(logits, y).sum() / count
    (grad,) = torch.autograd.grad(part, [logits])
    return part.detach(), grad


maximum = torch.maximum
cut = torch.split
join = torch.cat
reshape = torch.reshape
squares = partial(layers.squares, torch.sum)
clip = partial(layers.clip, torch.clamp_min)
