"""LeNet on several devices from scratch, in PyTorch.

python -m frameworks.pytorch.scratch --devices 2 --preset quick
"""

if __name__ == "__main__":  # before PyTorch is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("pytorch", "scratch"))

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from common.base.arrays import Array
from frameworks.pytorch.kernels import (
    avg_pool2d,
    conv2d,
    dense,
    images,
    on_each_device,
    relu,
    scatter,
)

Device = torch.device
Params = dict[str, Tensor]


def get_params(weights: Mapping[str, Array], device: Device) -> Params:
    """A copy of canonical weights on `device`, in their dtype, ready for gradients."""
    # On the CPU, `to` by itself would share the memory of the array, and so of every other replica.
    return {
        name: torch.from_numpy(values).to(device, copy=True).requires_grad_()
        for name, values in weights.items()
    }


def layer(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a layer for `X`, with its activation and pooling."""
    weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(conv2d(images(X) if name == "conv1" else X, weight, bias)))
    return dense(X, weight, bias) if name == "fc2" else relu(dense(X, weight, bias))


def lenet(X: Tensor, params: Params) -> Tensor:
    """The logits (n, 10) of images `X` (n, 1, 28, 28)."""
    for name in ("conv1", "conv2", "fc1", "fc2"):
        X = layer(name, X, params)
    return X


def loss(y_hat: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy (n,) of each example, from its logits (n, 10) and class (n,)."""
    return F.cross_entropy(y_hat, y, reduction="none")


def allreduce(data: Sequence[Tensor]) -> list[Tensor]:
    """The sum of tensors that lie on k devices: one copy of it on each of them."""
    total = data[0].clone()
    for tensor in data[1:]:
        total += tensor.to(total.device)
    return [total.to(tensor.device, copy=True) for tensor in data]


def split_batch(X: Array, y: Array, devices: Sequence[Device]) -> tuple[list[Tensor], list[Tensor]]:
    """The k shards of a minibatch, each on its device; they differ by at most one example."""
    return scatter(X, devices), scatter(y, devices)


def shard_loss_and_grad(
    params: Params, X: Tensor, y: Tensor, examples: int
) -> tuple[Tensor, Params]:
    """A shard's part of the mean loss over `examples`, and its gradient; 0 for an empty shard."""
    with torch.enable_grad():
        shard_loss = loss(lenet(X, params), y).sum() / examples
    grad = torch.autograd.grad(shard_loss, list(params.values()))
    return shard_loss.detach(), dict(zip(params, grad, strict=True))


def sgd(params: Params, grads: Params, lr: float) -> None:
    """One step of stochastic gradient descent on one device, in place."""
    with torch.no_grad():
        for name, param in params.items():
            param -= lr * grads[name]


def train_batch(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[Device],
    lr: float,
    examples: int,
    allreduce: Callable[[Sequence[Tensor]], list[Tensor]] = allreduce,
) -> Tensor:
    """One step of SGD on a minibatch of `examples`; returns its mean loss, on the first device."""
    X_shards, y_shards = split_batch(X, y, devices)
    # Loss and gradient of each shard, computed on all devices at the same time.
    results = on_each_device(
        shard_loss_and_grad, device_params, X_shards, y_shards, examples=examples
    )
    losses, grads = zip(*results, strict=True)
    # Every device gets the sum of all devices' gradients,
    for name in device_params[0]:
        summed = allreduce([grad[name] for grad in grads])
        for grad, total in zip(grads, summed, strict=True):
            grad[name] = total
    # and changes its copy of the parameters by it.
    for params, grad in zip(device_params, grads, strict=True):
        sgd(params, grad, lr)
    return allreduce(losses)[0]
