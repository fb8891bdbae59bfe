"""Collectives over the processes of several hosts, by Gloo on CPUs and NCCL on GPUs."""

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
    """A further connection to the store of the rendezvous."""
    store: dist.Store = dist.distributed_c10d._get_default_store().clone()  # type: ignore[attr-defined]
    return store


def gathered(values: Array) -> Array:
    """All-gathers `values`, of one shape everywhere: (processes, ...), by rank."""
    local = torch.from_numpy(values)
    gathered_tensors = [torch.empty_like(local) for _ in range(processes())]
    dist.all_gather(gathered_tensors, local)
    stacked: Array = torch.stack(gathered_tensors).numpy()
    return stacked


def gathered_values(value: Any) -> list[Any]:
    """All-gathers a JSON value of at most LONGEST bytes, by rank."""
    if processes() == 1:
        return [value]
    encoded = bytearray(json.dumps(value).encode().ljust(LONGEST))
    local = torch.frombuffer(encoded, dtype=torch.uint8)
    gathered_tensors = [torch.empty_like(local) for _ in range(processes())]
    dist.all_gather(gathered_tensors, local)
    return [json.loads(tensor.numpy().tobytes()) for tensor in gathered_tensors]
