"""All-reduce by any schedule, and by PyTorch's collectives."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import timedelta
from functools import cache
from typing import Any

import torch
from torch import Tensor, distributed as dist

from common.backends.devices import ALONE
from common.parallel.replicas import share_of
from common.parallel.schedules import Schedule, execute
from common.parallel.shards import shard_sizes
from frameworks.pytorch import hosts
from frameworks.pytorch.interfaces import interface_used


def by_schedule(schedule: Schedule, data: Sequence[Tensor]) -> list[Tensor]:
    """All-reduces one tensor per device; the schedule orders the messages."""
    sizes = shard_sizes(data[0].numel(), schedule.chunks)
    held = [list(tensor.flatten().split(sizes)) for tensor in data]
    if schedule.devices > len(data):
        here = share_of(range(schedule.devices), hosts)
        execute_with_others(schedule, dict(zip(here, held, strict=True)))
    else:
        execute(schedule, held, lambda chunk, i: chunk.to(data[i].device, copy=True))
    return [torch.cat(chunks).reshape(data[0].shape) for chunks in held]


def execute_with_others(schedule: Schedule, held: dict[int, list[Tensor]]) -> None:
    """Runs a schedule on the chunks of this process's devices, by number, by messages to others."""
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
    # NCCL takes no other layout, and the gradient of a convolution has another.
    summed = [tensor.clone(memory_format=torch.contiguous_format) for tensor in data]
    if summed[0].is_cuda:
        torch.cuda.nccl.all_reduce(summed)
        if hosts.processes() > 1:
            dist.all_reduce(summed[0])
            summed = [summed[0].to(each.device, copy=True) for each in summed]
    else:
        devices = range(hosts.processes() * len(data))
        groups = gloo(len(devices), tuple(share_of(devices, hosts)))
        works = [group.allreduce([each]) for group, each in zip(groups, summed, strict=True)]
        for work in works:
            work.wait()
    return summed


@cache
def gloo(k: int, here: tuple[int, ...]) -> list[Any]:
    """Process groups of Gloo for this process's devices, each as one of k ranks."""
    alone = dist.HashStore()

    def view(device: int) -> Any:
        # A thread that waits blocks its connection: each thread has one.
        store = alone if k == len(here) else dist.PrefixStore("native", hosts.connection_to_store())
        return dist.ProcessGroupGloo(store, device, k, timedelta(minutes=1))

    # With several processes, the rendezvous has set the interface.
    interface = interface_used(ALONE) if k == len(here) else nullcontext()
    with interface, ThreadPoolExecutor(k) as pool:  # each waits until all others are there
        return list(pool.map(view, here))
