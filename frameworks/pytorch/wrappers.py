"""PyTorch's wrappers: DDP and FSDP, a process for each device, and DP, one process for all."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, distributed as dist, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from common.parallel.shards import shard_sizes
from frameworks.pytorch.resnet import Residual


class DataParallel(nn.DataParallel[nn.Module]):
    """PyTorch's, but its shards differ by one example at most: by itself it may leave one out."""

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]
    ) -> tuple[Any, Any]:
        """The shards of the one input, on their devices; none is empty."""
        (X,) = inputs
        shards = X.split(shard_sizes(len(X), len(device_ids)))
        found = [(X.to(i, non_blocking=True),) for X, i in zip(shards, device_ids, strict=True)]
        found = [(shard,) for (shard,) in found if len(shard)]
        return found, [{} for _ in found]


class FullySharded(nn.Module):
    """A net with its weights split over the processes, gathered block by block in each pass."""

    def __init__(self, net: nn.Module, device: torch.device) -> None:
        super().__init__()
        mesh = init_device_mesh(device.type, (dist.get_world_size(),))
        for block in (each for each in net.modules() if isinstance(each, Residual)):
            fully_shard(block, mesh=mesh)
        fully_shard(net, mesh=mesh)
        self.module = net

    def forward(self, X: Tensor) -> Tensor:
        """The net's output."""
        output: Tensor = self.module(X)
        return output


Wrapped: TypeAlias = nn.parallel.DistributedDataParallel | FullySharded | nn.DataParallel[nn.Module]


def wrap(net: nn.Module, devices: Sequence[torch.device], wrapper: str) -> Wrapped:
    """The net, wrapped: its replica in this process, its part of it, or, with DP, all replicas."""
    if wrapper == "dp":  # which PyTorch keeps for old code
        return DataParallel(net, device_ids=[device.index for device in devices])
    if wrapper == "fsdp":
        return FullySharded(net, devices[0])
    gpu = devices if devices[0].type == "cuda" else None
    replica = nn.parallel.DistributedDataParallel(net, device_ids=gpu)
    # By default it broadcasts the first process's running statistics at each step.
    # As an argument this has one name up to PyTorch 2.12 and another from 2.13 on.
    replica.broadcast_buffers = False
    return replica
