"""ResNet-18 on several devices with PyTorch's own wrappers.

python -m frameworks.pytorch.concise --devices 2 --preset quick
torchrun --nproc-per-node 2 -m frameworks.pytorch.concise --devices 2 --preset quick
"""

if __name__ == "__main__":  # before PyTorch is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("pytorch", "concise"))

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, distributed as dist, nn

from common.base.arrays import Array
from frameworks.pytorch.batch_norm import share_statistics
from frameworks.pytorch.kernels import to_device
from frameworks.pytorch.layouts import load_weights, on_host
from frameworks.pytorch.resnet import resnet18
from frameworks.pytorch.wrappers import Wrapped, wrap

Device = torch.device


@dataclass(frozen=True)
class Replicas:
    """The wrapped net: this process's replica of it, or its part, or with DP all replicas."""

    net: Wrapped
    optimizer: torch.optim.Optimizer
    devices: Sequence[Device]


def replicate(
    weights: Mapping[str, Array], devices: Sequence[Device], batch_norm: str, wrapper: str
) -> Replicas:
    """ResNet-18 with these weights, on all devices, of which this process may have one."""
    net = resnet18(len(weights["conv1.bias"]), batch_norm)
    net.to(devices[0], torch.as_tensor(weights["fc.bias"]).dtype)
    load_weights(net, weights)
    wrapped = wrap(net, devices, wrapper)
    return Replicas(wrapped, torch.optim.SGD(wrapped.parameters()), devices)


def scatter(batch: Array, replicas: Replicas) -> Tensor:
    """The examples of this process, on its device; with DP, the wrapper splits them further."""
    return to_device(torch.as_tensor(batch), replicas.devices[0])


loss = nn.CrossEntropyLoss(reduction="none")


def forward_backward(X: Array, y: Array, replicas: Replicas, examples: int) -> Tensor:
    """The mean loss over the minibatch; its gradient is left in the parameters."""
    replicas.net.train()
    replicas.optimizer.zero_grad()
    X_shard, y_shard = scatter(X, replicas), scatter(y, replicas)
    shard_loss: Tensor = loss(replicas.net(X_shard), y_shard).sum() / examples
    # DDP and FSDP divide the sum of all gradients by the number of processes.
    (shard_loss * dist.get_world_size()).backward()
    mean_loss = shard_loss.detach()
    dist.all_reduce(mean_loss)
    return mean_loss


def train_batch(X: Array, y: Array, replicas: Replicas, lr: float, examples: int) -> Tensor:
    """One step of SGD on a minibatch of `examples`; returns its mean loss, still on the device."""
    mean_loss = forward_backward(X, y, replicas, examples)
    for group in replicas.optimizer.param_groups:
        group["lr"] = lr
    replicas.optimizer.step()
    return mean_loss


@torch.no_grad()
def predict(X: Array, replicas: Replicas) -> Array:
    """The logits (n, 10) of this process's examples, by the first device's running statistics."""
    share_statistics(replicas.net.module)
    replicas.net.eval()
    return on_host(replicas.net.module(scatter(X, replicas)))
