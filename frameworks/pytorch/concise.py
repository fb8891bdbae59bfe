"""ResNet-18 on several devices with PyTorch's own wrappers.

python -m frameworks.pytorch.concise --devices 2 --preset quick
torchrun --nproc-per-node 2 -m frameworks.pytorch.concise --devices 2 --preset quick
"""

if __name__ == "__main__":  # before PyTorch is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("pytorch", "concise"))

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, distributed as dist, nn

from common.base.arrays import Array, Weights
from common.chapters.concise import ConciseOptions
from common.models.nets import trainable
from common.parallel.shards import saved_of, shard_sizes
from frameworks.pytorch.activations import layer_outputs
from frameworks.pytorch.batch_norm import share_statistics, unmoved_statistics
from frameworks.pytorch.devices import devices as devices, synchronize as synchronize
from frameworks.pytorch.hosts import same_on_every_host
from frameworks.pytorch.kernels import placed
from frameworks.pytorch.layouts import from_canonical, on_host, own_weights, to_canonical
from frameworks.pytorch.resnet import resnet18
from frameworks.pytorch.wrappers import (
    Wrapped,
    gathered,
    launch as launch,
    of_everyone,
    wrap,
)

Device = torch.device


@dataclass(frozen=True)
class Replicas:
    """The wrapped net: this process's replica of it, with DDP, or all replicas, with DP."""

    net: Wrapped
    optimizer: torch.optim.Optimizer
    device: Device


def replicate(
    weights: Mapping[str, Array], devices: Sequence[Device], options: ConciseOptions
) -> Replicas:
    """ResNet-18 with these weights, on all devices; with DDP, this process has one of them."""
    device = devices[0]
    net: nn.Module = resnet18(len(weights["conv1.bias"]), options.batch_norm)
    net.to(device, torch.as_tensor(weights["fc.bias"]).dtype).load_state_dict(
        {name: torch.from_numpy(from_canonical(name, v)) for name, v in weights.items()},
        strict=False,  # it also counts minibatches, which nothing needs
    )
    wrapped = wrap(net, devices, options.wrapper)
    return Replicas(wrapped, torch.optim.SGD(wrapped.parameters()), device)


def scatter(batch: Array, replicas: Replicas) -> Tensor:
    """The shard of a minibatch that this process takes, on its device."""
    sizes = shard_sizes(len(batch), dist.get_world_size())
    shard: Tensor = torch.as_tensor(batch).split(sizes)[dist.get_rank()]
    return placed(shard, replicas.device)


loss = nn.CrossEntropyLoss(reduction="none")


def forward_backward(X: Array, y: Array, replicas: Replicas) -> Tensor:
    """The mean loss over the minibatch; its gradient is left in the parameters."""
    replicas.net.train()
    replicas.optimizer.zero_grad()
    X_shard, y_shard = scatter(X, replicas), scatter(y, replicas)
    shard_loss: Tensor = loss(replicas.net(X_shard), y_shard).sum() / len(X)
    # DDP divides the sum of all gradients by the number of processes.
    (shard_loss * dist.get_world_size()).backward()
    mean_loss = shard_loss.detach()
    dist.all_reduce(mean_loss)
    return mean_loss


def train_batch(
    X: Array,
    y: Array,
    replicas: Replicas,
    devices: Sequence[Device],
    lr: float,
    options: ConciseOptions,
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the device."""
    mean_loss = forward_backward(X, y, replicas)
    for group in replicas.optimizer.param_groups:
        group["lr"] = lr
    replicas.optimizer.step()
    return mean_loss


def gradients(
    X: Array, y: Array, replicas: Replicas, devices: Sequence[Device], options: ConciseOptions
) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    with unmoved_statistics(replicas.net.module):
        forward_backward(X, y, replicas)
    grads = {name: param.grad for name, param in replicas.net.module.named_parameters()}
    return {name: to_canonical(name, on_host(g)) for name, g in grads.items() if g is not None}


@torch.no_grad()
def predict_shards(X: Array, replicas: Replicas) -> list[Tensor]:
    """The logits of each device's shard, by the first device's running statistics."""
    share_statistics(replicas.net.module)
    replicas.net.eval()
    logits = replicas.net.module(scatter(X, replicas))
    return gathered(logits, shard_sizes(len(X), dist.get_world_size()))


def predict(X: Array, replicas: Replicas, devices: Sequence[Device]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    return np.concatenate([on_host(shard) for shard in predict_shards(X, replicas)])


def export(replicas: Replicas) -> Weights:
    """Weights and the first device's running statistics; checks that all replicas are the same."""
    share_statistics(replicas.net.module)
    return same_on_every_host(own_weights(replicas.net.module), share=1)


def save(replicas: Replicas) -> Weights:
    """All that the next step depends on: the weights, and every device's running statistics."""
    weights = own_weights(replicas.net.module)
    trained = {name: values for name, values in weights.items() if trainable(name)}
    statistics = {name: values for name, values in weights.items() if name not in trained}
    everyones = {name: of_everyone(v, replicas.net) for name, v in statistics.items()}
    return same_on_every_host(trained, share=1) | everyones


def restore(saved: Mapping[str, Array], replicas: Replicas, devices: Sequence[Device]) -> None:
    """Puts this process's replica where `save` found another one."""
    own = saved_of(saved, dist.get_rank())
    replicas.net.module.load_state_dict(
        {name: torch.from_numpy(from_canonical(name, v)) for name, v in own.items()},
        strict=False,  # as in `replicate`
    )


def activations(X: Array, replicas: Replicas, devices: Sequence[Device]) -> Weights:
    """What each layer with weights makes of a batch on one device, by its name."""
    return layer_outputs(X, replicas.net.module, replicas.device)
