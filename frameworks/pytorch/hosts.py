"""What processes on several hosts have to do with each other, by Gloo on CPUs and NCCL on GPUs."""

import json
from typing import Any, Final

import torch
from torch import distributed as dist

from common.base.arrays import Array

LONGEST: Final = 1024
"""Bytes of a value that processes gather."""


def processes() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Which of them this one is."""
    return dist.get_rank() if dist.is_initialized() else 0


def connection_to_store() -> dist.Store:
    """A further connection to where all processes have met."""
    store: dist.Store = dist.distributed_c10d._get_default_store().clone()  # type: ignore[attr-defined]
    return store


def gathered(values: Array) -> Array:
    """What each process has as `values`, by rank, (processes, ...); all are of one shape."""
    ours = torch.from_numpy(values)
    found = [torch.empty_like(ours) for _ in range(processes())]
    dist.all_gather(found, ours)
    stacked: Array = torch.stack(found).numpy()
    return stacked


def gathered_values(value: Any) -> list[Any]:
    """What each process of the group has given, by rank: JSON of at most LONGEST bytes."""
    if processes() == 1:
        return [value]
    ours = torch.frombuffer(bytearray(json.dumps(value).encode().ljust(LONGEST)), dtype=torch.uint8)
    found = [torch.empty_like(ours) for _ in range(processes())]
    dist.all_gather(found, ours)
    return [json.loads(each.numpy().tobytes()) for each in found]
