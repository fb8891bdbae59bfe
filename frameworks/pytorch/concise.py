"""ResNet-18 on several devices with PyTorch's own wrappers.

python -m frameworks.pytorch.concise --devices 2 --preset quick
torchrun --nproc-per-node 2 -m frameworks.pytorch.concise --devices 2 --preset quick
"""

if __name__ == "__main__":  # before PyTorch is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("pytorch", "concise"))

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch import distributed as dist

from common.backends.frameworks import IN_PROCESSES
from common.base.arrays import Array, Weights
from common.base.errors import RequestError, RunError
from common.models.nets import trainable
from common.parallel.shards import shard_sizes
from frameworks.pytorch.devices import devices as devices
from frameworks.pytorch.layers import activations as activations
from frameworks.pytorch.processes import launch_processes
from frameworks.pytorch.resnet import resnet18


@dataclass(frozen=True)
class Replicas:
    """The wrapped net: this process's replica of it, with DDP, or all replicas, with DP."""

    net: nn.parallel.DistributedDataParallel | nn.DataParallel[nn.Module]
    optimizer: torch.optim.Optimizer
    device: torch.device


def launch(
    worker: Callable[[int], None],
    count: int,
    /,
    *,
    batch_norm: str = "per-device",
    wrapper: str = "ddp",
) -> None:
    """Calls `worker(rank)` in a process for each device; `DataParallel` needs one for all."""
    launch_processes(worker, count if wrapper in IN_PROCESSES else 1)


def replicate(
    weights: Mapping[str, Array],
    devices: Sequence[torch.device],
    /,
    *,
    batch_norm: str = "per-device",
    wrapper: str = "ddp",
) -> Replicas:
    """ResNet-18 with these weights, wrapped; its replica in this process, with DDP."""
    device = devices[dist.get_rank()]
    net = resnet18(len(weights["conv1.bias"]), batch_norm)
    net.to(device, torch.as_tensor(weights["fc.bias"]).dtype).load_state_dict(
        {name: torch.from_numpy(turned(name, values)) for name, values in weights.items()},
        strict=False,  # it also counts minibatches, which nothing needs
    )
    gpu = [device] if device.type == "cuda" else None
    wrapped = (
        nn.parallel.DistributedDataParallel(net, device_ids=gpu)
        if wrapper == "ddp"
        else legacy(net, devices, batch_norm)
    )
    return Replicas(wrapped, torch.optim.SGD(wrapped.parameters()), device)


def legacy(
    net: nn.Module, devices: Sequence[torch.device], batch_norm: str
) -> nn.DataParallel[nn.Module]:
    """`nn.DataParallel`, which one process drives: PyTorch keeps it for old code."""
    if devices[0].type != "cuda":
        raise RequestError("--wrapper dp needs GPUs: on CPUs it would use one device; take ddp")
    if batch_norm == "sync":
        raise RequestError("--wrapper dp cannot synchronize batch norm; take ddp")
    return nn.DataParallel(net, device_ids=[device.index for device in devices])


loss = nn.CrossEntropyLoss(reduction="none")


def turned(name: str, values: Array) -> Array:
    """A tensor from canonical layout to PyTorch's, or back: dense layers are (out, in) there."""
    return values.T if name == "fc.weight" else values


def own_shard(batch: Array, replicas: Replicas) -> Tensor:
    """The shard of a minibatch that is this process's, on its device."""
    sizes = shard_sizes(len(batch), dist.get_world_size())
    shard: Tensor = torch.as_tensor(batch).split(sizes)[dist.get_rank()]
    return shard.to(replicas.device)


def forward_backward(X: Array, y: Array, replicas: Replicas) -> Tensor:
    """The mean loss over the minibatch; its gradient is left in the parameters."""
    replicas.net.train()
    replicas.optimizer.zero_grad()
    y_hat = replicas.net(own_shard(X, replicas))
    shard_loss: Tensor = loss(y_hat, own_shard(y, replicas)).sum() / len(X)
    # DDP divides the sum of all gradients by the number of processes.
    (shard_loss * dist.get_world_size()).backward()
    mean_loss = shard_loss.detach()
    dist.all_reduce(mean_loss)
    return mean_loss


def train_batch(
    X: Array, y: Array, replicas: Replicas, devices: Sequence[torch.device], lr: float
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss."""
    mean_loss = forward_backward(X, y, replicas)
    for group in replicas.optimizer.param_groups:
        group["lr"] = lr
    replicas.optimizer.step()
    return mean_loss


def gradients(X: Array, y: Array, replicas: Replicas, devices: Sequence[torch.device]) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    net = replicas.net.module
    kept = {name: buffer.clone() for name, buffer in net.named_buffers()}
    forward_backward(X, y, replicas)
    net.load_state_dict(kept, strict=False)
    return {
        name: turned(name, param.grad.cpu().numpy().copy())
        for name, param in net.named_parameters()
        if param.grad is not None
    }


def predict(X: Array, replicas: Replicas, devices: Sequence[torch.device]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    share_statistics(replicas)
    replicas.net.eval()
    sizes = shard_sizes(len(X), dist.get_world_size())
    with torch.no_grad():
        logits = replicas.net.module(own_shard(X, replicas))
    padded = logits.new_zeros((sizes[0], 10))
    padded[: len(logits)] = logits
    gathered = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(gathered, padded)
    shards = [shard[:size].cpu() for shard, size in zip(gathered, sizes, strict=True)]
    array: Array = torch.cat(shards).numpy()
    return array


def share_statistics(replicas: Replicas) -> None:
    """Gives every device the running statistics of the first one."""
    for name, buffer in replicas.net.module.named_buffers():
        if not trainable(name):
            dist.broadcast(buffer, 0)


def export(replicas: Replicas) -> Weights:
    """Weights and the first device's running statistics; checks that all replicas are the same."""
    share_statistics(replicas)
    weights = {
        name: turned(name, values.detach().cpu().numpy().copy())
        for name, values in replicas.net.module.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
    digests = [hashlib.sha256(values.tobytes()).digest()[:8] for values in weights.values()]
    ours = torch.frombuffer(bytearray(b"".join(digests)), dtype=torch.int64).to(replicas.device)
    everyones = [torch.empty_like(ours) for _ in range(dist.get_world_size())]
    dist.all_gather(everyones, ours)
    for rank, theirs in enumerate(everyones):
        for name, same in zip(weights, (theirs == everyones[0]).tolist(), strict=True):
            if not same:
                raise RunError(f"{name} on device {rank} differs from its copy on device 0")
    return weights


def synchronize(replicas: Replicas) -> None:
    """Returns once all queued work on the replicas is done."""
    if replicas.device.type == "cuda":
        torch.cuda.synchronize(replicas.device)
