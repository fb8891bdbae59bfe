"""Allreduce by any schedule, and by PyTorch's own collectives."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from typing import Any

import torch
from torch import Tensor, distributed as dist

from common.parallel.schedules import SCHEDULES, Schedule, execute
from common.parallel.shards import shard_sizes

Params = dict[str, Tensor]


def allreduce_by(algorithm: str, grads: Sequence[Params]) -> list[Params]:
    """The sum of k devices' gradients, on each of them; they travel as one vector."""
    vectors = [flatten(grad) for grad in grads]
    if algorithm == "native":
        summed = native(vectors)
    else:
        summed = by_schedule(SCHEDULES[algorithm](len(vectors)), vectors)
    return [unflatten(vector, grad) for vector, grad in zip(summed, grads, strict=True)]


def flatten(params: Params) -> Tensor:
    """All tensors of a device as one vector."""
    return torch.cat([param.flatten() for param in params.values()])


def unflatten(vector: Tensor, like: Params) -> Params:
    """The inverse of `flatten`, into the shapes of `like`."""
    parts = vector.split([param.numel() for param in like.values()])
    return {
        name: part.reshape(param.shape)
        for (name, param), part in zip(like.items(), parts, strict=True)
    }


def by_schedule(schedule: Schedule, data: Sequence[Tensor]) -> list[Tensor]:
    """The sum of vectors that lie on k devices, on each of them, moved as the schedule says."""
    held = [list(vector.split(shard_sizes(len(vector), schedule.chunks))) for vector in data]
    execute(schedule, held, lambda chunk, i: chunk.to(data[i].device, copy=True))
    return [torch.cat(chunks) for chunks in held]


def native(data: Sequence[Tensor]) -> list[Tensor]:
    """The same by NCCL on GPUs, by gloo on CPUs."""
    summed = [tensor.clone() for tensor in data]
    if summed[0].is_cuda:
        torch.cuda.nccl.all_reduce(summed)
    else:
        works = [
            group.allreduce([each]) for group, each in zip(gloo(len(data)), summed, strict=True)
        ]
        for work in works:
            work.wait()
    return summed


@cache
def gloo(k: int) -> list[Any]:
    """Gloo's view of each of k devices; it takes them for processes."""
    store = dist.HashStore()
    with ThreadPoolExecutor(k) as pool:  # each waits until all others are there
        return list(
            pool.map(
                lambda rank: dist.ProcessGroupGloo(store, rank, k, timedelta(minutes=1)), range(k)
            )
        )
