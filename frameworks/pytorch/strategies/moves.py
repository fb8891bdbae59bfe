"""How tensors get from device to device, in PyTorch: all go by `send`, which counts them."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from common.base.arrays import Array
from common.parallel.ledger import Group
from common.parallel.shards import shard_sizes

Device = torch.device
Params = dict[str, Tensor]


def place(values: Array, device: Device) -> Tensor:
    """A copy of an array of the host on a device."""
    return torch.from_numpy(values).to(device, copy=True)


def send(tensor: Tensor, source: int, target: int, kind: str, group: Group) -> Tensor:
    """A copy of a tensor on another device of the group; to the same one, nothing is sent."""
    if source == target:
        return tensor
    group.message(tensor, source, target, kind)
    return tensor.to(group.devices[target], copy=True)


def vjp(
    function: Callable[[Tensor, Params], Tensor],
    X: Tensor,
    params: Mapping[str, Tensor],
    grad: Tensor,
) -> tuple[Tensor, Params]:
    """The gradients of `X` and `params`, from that of `function(X, params)`.

    That is a vector-Jacobian product. The function is computed once more for it.
    """
    X = X.detach().requires_grad_()
    own = {name: param.detach().requires_grad_() for name, param in params.items()}
    with torch.enable_grad():
        Y = function(X, own)
    found, *grads = torch.autograd.grad(Y, [X, *own.values()], grad)
    return found, dict(zip(own, grads, strict=True))


def allreduce(tensors: Sequence[Tensor], kind: str, group: Group) -> list[Tensor]:
    """The sum of tensors that lie on all devices of a group, on each of them.

    The first device adds them up, as in the first chapter.
    """
    total = tensors[0]
    for device, tensor in enumerate(tensors[1:], start=1):
        total = total + send(tensor, device, 0, kind, group)
    return [send(total, 0, device, kind, group) for device in range(len(tensors))]


def reduce_scatter(tensors: Sequence[Tensor], kind: str, group: Group) -> list[Tensor]:
    """A slice of the sum of tensors, in one row, for each device: each adds up its own."""
    sizes = shard_sizes(tensors[0].numel(), len(tensors))
    slices = [tensor.flatten().split(sizes) for tensor in tensors]
    totals = []
    for target in range(len(tensors)):
        total = send(slices[0][target], 0, target, kind, group)
        for source in range(1, len(tensors)):
            total = total + send(slices[source][target], source, target, kind, group)
        totals.append(total)
    return totals


def all_gather(
    slices: Sequence[Tensor], shape: Sequence[int], kind: str, group: Group
) -> list[Tensor]:
    """The whole tensor on each device, from the slices of all of them."""
    found = []
    for target in range(len(slices)):
        parts = [send(part, source, target, kind, group) for source, part in enumerate(slices)]
        found.append(torch.cat(parts).reshape(tuple(shape)))
    return found
