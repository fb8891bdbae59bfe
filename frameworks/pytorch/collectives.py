"""All-reduce by any schedule, and by PyTorch's collectives."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from typing import Any

import torch
from torch import Tensor, distributed as dist

from common.base.machine import LOOPBACK
from common.parallel.schedules import Schedule, execute
from common.parallel.shards import shard_sizes


def by_schedule(schedule: Schedule, data: Sequence[Tensor]) -> list[Tensor]:
    """All-reduces one tensor per device; the schedule orders the messages."""
    sizes = shard_sizes(data[0].numel(), schedule.chunks)
    held = [list(tensor.flatten().split(sizes)) for tensor in data]
    execute(schedule, held, lambda chunk, i: chunk.to(data[i].device, copy=True))
    return [torch.cat(chunks).reshape(data[0].shape) for chunks in held]


def native(data: Sequence[Tensor]) -> list[Tensor]:
    """The same by NCCL on GPUs, by gloo on CPUs."""
    # NCCL takes no other layout, and the gradient of a convolution has another.
    summed = [tensor.clone(memory_format=torch.contiguous_format) for tensor in data]
    if summed[0].is_cuda:
        torch.cuda.nccl.all_reduce(summed)
    else:
        pairs = zip(gloo(len(data)), summed, strict=True)
        works = [group.allreduce([each]) for group, each in pairs]
        for work in works:
            work.wait()
    return summed


@cache
def gloo(k: int) -> list[Any]:
    """Process groups of Gloo for k devices of this process, each as one rank."""
    store = dist.HashStore()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)

    def view(device: int) -> Any:
        return dist.ProcessGroupGloo(store, device, k, timedelta(minutes=1))

    with ThreadPoolExecutor(k) as pool:  # each waits until all others are there
        return list(pool.map(view, range(k)))
