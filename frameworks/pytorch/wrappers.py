"""PyTorch's own wrappers: DDP, a process for each device, and DP, one process for all of them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn

from common.backends.devices import ALONE, DeviceRequest, Process
from common.base.errors import RequestError
from common.chapters.concise import ConciseOptions
from common.parallel.shards import shard_sizes
from frameworks.pytorch.devices import settled
from frameworks.pytorch.launch import launch_processes

Wrapped: TypeAlias = nn.parallel.DistributedDataParallel | nn.DataParallel[nn.Module]


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: ConciseOptions,
    process: Process = ALONE,
) -> None:
    """Calls `worker` in a process for each device; `DataParallel` needs one for all.

    Raises RequestError where the latter would not do what is asked for.
    """
    kind, count = settled(request)
    if not options.in_processes():
        if kind == "cpu":
            raise RequestError("--wrapper dp needs GPUs: on CPUs it would use one device; take ddp")
        if options.batch_norm == "sync":
            raise RequestError("--wrapper dp cannot synchronize batch norm; take ddp")
        if process.count > 1:
            raise RequestError("--wrapper dp trains in one process, on one host; take ddp")
        count = 1
    launch_processes(worker, len(process.share_of(range(count))), process)


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


def wrap(net: nn.Module, devices: Sequence[torch.device], wrapper: str) -> Wrapped:
    """The net, wrapped: its replica in this process, with DDP, or all replicas, with DP."""
    if wrapper == "dp":  # which PyTorch keeps for old code
        return DataParallel(net, device_ids=[device.index for device in devices])
    gpu = devices if devices[0].type == "cuda" else None
    # By itself it replaces all running statistics, at each step, by those of the first process.
    return nn.parallel.DistributedDataParallel(net, device_ids=gpu, forward_sync_buffers=False)
