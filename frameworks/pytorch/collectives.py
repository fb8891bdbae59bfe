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
from frameworks.pytorch.hosts import connection_to_store, everywhere, own

Params = dict[str, Tensor]


def allreduce_by(algorithm: str, grads: Sequence[Params]) -> list[Params]:
    """The sum of k devices' gradients, on each of them; they travel as one vector."""
    vectors = [flatten(grad) for grad in grads]
    if algorithm == "native":
        summed = native(vectors)
    else:
        summed = by_schedule(SCHEDULES[algorithm](everywhere(vectors)), vectors)
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
    if schedule.devices > len(data):
        execute_with_others(schedule, dict(zip(own(range(schedule.devices)), held, strict=True)))
    else:
        execute(schedule, held, lambda chunk, i: chunk.to(data[i].device, copy=True))
    return [torch.cat(chunks) for chunks in held]


def execute_with_others(schedule: Schedule, held: dict[int, list[Tensor]]) -> None:
    """Does what the schedule says; `held` tells what each device of this process has, by number.

    The others' chunks come and go as messages from process to process.
    """
    for transfers in schedule.rounds:
        messages, arrived = [], []
        for t, i in [(each, i) for each in transfers for i in each.chunks]:
            if t.target in held:
                chunk = torch.empty_like(held[t.target][i])
                arrived.append((t, i, chunk))
                if t.source in held:
                    chunk.copy_(held[t.source][i])
                else:
                    messages.append(dist.P2POp(dist.irecv, chunk, t.source // len(held)))
            elif t.source in held:
                messages.append(dist.P2POp(dist.isend, held[t.source][i], t.target // len(held)))
        for work in dist.batch_isend_irecv(messages) if messages else ():
            work.wait()
        for t, i, chunk in arrived:
            held[t.target][i] = held[t.target][i] + chunk if t.adds else chunk


def native(data: Sequence[Tensor]) -> list[Tensor]:
    """The same by NCCL on GPUs, by gloo on CPUs."""
    summed = [tensor.clone() for tensor in data]
    if summed[0].is_cuda:
        torch.cuda.nccl.all_reduce(summed)
        if everywhere(data) > len(data):
            dist.all_reduce(summed[0])
            summed = [summed[0].to(each.device, copy=True) for each in summed]
    else:
        groups = gloo(everywhere(data), tuple(own(range(everywhere(data)))))
        works = [group.allreduce([each]) for group, each in zip(groups, summed, strict=True)]
        for work in works:
            work.wait()
    return summed


@cache
def gloo(k: int, here: tuple[int, ...]) -> list[Any]:
    """Gloo's view of those of k devices that are here; it takes them for processes."""
    own = dist.HashStore()

    def view(device: int) -> Any:
        # Who waits at a connection to the store keeps others from it: each has its own.
        store = own if k == len(here) else dist.PrefixStore("native", connection_to_store())
        return dist.ProcessGroupGloo(store, device, k, timedelta(minutes=1))

    with ThreadPoolExecutor(k) as pool:  # each waits until all others are there
        return list(pool.map(view, here))
