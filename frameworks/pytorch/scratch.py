"""LeNet on several devices from scratch, in PyTorch.

python -m frameworks.pytorch.scratch --devices 2 --preset quick
"""

if __name__ == "__main__":  # before PyTorch is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("pytorch", "scratch"))

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from common.base.arrays import Array, Weights
from common.chapters.scratch import ScratchOptions
from common.parallel.shards import same_everywhere, shard_sizes
from frameworks.pytorch.collectives import allreduce_by
from frameworks.pytorch.devices import devices as devices, synchronize as synchronize
from frameworks.pytorch.hosts import (
    everyones,
    everywhere,
    joined,
    own,
    same_on_every_host,
)
from frameworks.pytorch.kernels import (
    avg_pool2d,
    conv2d,
    dense,
    images,
    on_each_device,
    placed,
    relu,
)
from frameworks.pytorch.launch import launch as launch

Device = torch.device
Params = dict[str, Tensor]


def get_params(weights: Mapping[str, Array], device: Device) -> Params:
    """A copy of canonical weights on `device`, in their dtype, ready for gradients."""
    # On the CPU, `to` alone would share the memory of the array, and so of every other replica.
    return {
        name: torch.from_numpy(values).to(device, copy=True).requires_grad_()
        for name, values in weights.items()
    }


def replicate(
    weights: Mapping[str, Array], devices: Sequence[Device], options: ScratchOptions
) -> list[Params]:
    """One copy of the weights on each device."""
    return [get_params(weights, device) for device in devices]


def lenet(X: Tensor, params: Params) -> Tensor:
    """The logits (n, 10) of images `X` (n, 1, 28, 28)."""
    h1 = avg_pool2d(relu(conv2d(images(X), params["conv1.weight"], params["conv1.bias"])))
    h2 = avg_pool2d(relu(conv2d(h1, params["conv2.weight"], params["conv2.bias"])))
    h3 = relu(dense(h2, params["fc1.weight"], params["fc1.bias"]))
    return dense(h3, params["fc2.weight"], params["fc2.bias"])


def loss(y_hat: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy (n,) of each example, from its logits (n, 10) and class (n,)."""
    return F.cross_entropy(y_hat, y, reduction="none")


def allreduce(data: Sequence[Tensor]) -> list[Tensor]:
    """The sum of tensors that lie on k devices: one copy of it on each of them."""
    total = data[0].clone()
    for tensor in data[1:]:
        total += tensor.to(total.device)
    return [total.to(tensor.device, copy=True) for tensor in data]


def scatter(array: Array, devices: Sequence[Device]) -> list[Tensor]:
    """The shards of an array, each on its device; their lengths differ by at most one."""
    shards = torch.as_tensor(array).split(shard_sizes(len(array), everywhere(devices)))
    return [placed(shard, device) for shard, device in zip(own(shards), devices, strict=True)]


def split_batch(X: Array, y: Array, devices: Sequence[Device]) -> tuple[list[Tensor], list[Tensor]]:
    """The k shards of a minibatch, each on its device; they differ by at most one example."""
    return scatter(X, devices), scatter(y, devices)


def shard_loss_and_grad(
    params: Params, X: Tensor, y: Tensor, examples: int
) -> tuple[Tensor, Params]:
    """A shard's part of the mean loss over all `examples` of the minibatch, and its gradient.

    A shard without examples adds nothing to either.
    """
    shard_loss = loss(lenet(X, params), y).sum() / examples
    grad = torch.autograd.grad(shard_loss, list(params.values()))
    return shard_loss.detach(), dict(zip(params, grad, strict=True))


def sum_gradients(grads: Sequence[Params], algorithm: str) -> list[Params]:
    """The sum of k devices' gradients, on each of them."""
    if algorithm != "star" or everywhere(grads) > len(grads):  # else the book's, on one host
        return allreduce_by(algorithm, grads)
    summed = {name: allreduce([grad[name] for grad in grads]) for name in grads[0]}
    return [{name: copies[i] for name, copies in summed.items()} for i in range(len(grads))]


def forward_backward(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[Device],
    algorithm: str,
) -> tuple[Tensor, list[Params]]:
    """The mean loss over the minibatch, and its gradient on each device."""
    X_shards, y_shards = split_batch(X, y, devices)
    results = on_each_device(
        shard_loss_and_grad, device_params, X_shards, y_shards, examples=X.shape[0]
    )
    losses, grads = zip(*results, strict=True)
    return allreduce(everyones(losses))[0], sum_gradients(grads, algorithm)


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
    options: ScratchOptions,
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the first device."""
    mean_loss, device_grads = forward_backward(X, y, device_params, devices, options.allreduce)
    for params, grads in zip(device_params, device_grads, strict=True):
        sgd(params, grads, lr)
    return mean_loss


def gradients(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[Device],
    options: ScratchOptions,
) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    _, device_grads = forward_backward(X, y, device_params, devices, options.allreduce)
    return {name: grad.cpu().numpy() for name, grad in device_grads[0].items()}


@torch.no_grad()
def predict_shards(
    X: Array, device_params: Sequence[Params], devices: Sequence[Device]
) -> list[Tensor]:
    """The logits of each device's shard of a batch, (its examples, 10)."""
    return on_each_device(lenet, scatter(X, devices), device_params)


def predict(X: Array, device_params: Sequence[Params], devices: Sequence[Device]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    logits = predict_shards(X, device_params, devices)
    return joined(torch.cat([shard.cpu() for shard in logits]).numpy())


def export(device_params: Sequence[Params]) -> Weights:
    """The weights, by canonical names; checks that all replicas are the same."""
    copies = [
        {name: param.detach().cpu().numpy().copy() for name, param in params.items()}
        for params in device_params
    ]
    return same_on_every_host(same_everywhere(copies), len(copies))


save = export
"""All that the next step depends on: plain SGD keeps nothing but the weights."""


def restore(
    saved: Mapping[str, Array], device_params: Sequence[Params], devices: Sequence[Device]
) -> None:
    """Puts every device's copy where `save` found others."""
    for params, device in zip(device_params, devices, strict=True):
        params.update(get_params(saved, device))
