"""What processes on several hosts have to do with each other, by Gloo on CPUs and NCCL on GPUs."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed as dist

from common.base.arrays import Array, Weights
from common.parallel.shards import diverged

T = TypeVar("T")

LONGEST: Final = 1024
"""Bytes of a value that processes gather."""


def processes() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_initialized() else 1


def connection_to_store() -> dist.Store:
    """A further connection to where all processes have met."""
    store: dist.Store = dist.distributed_c10d._get_default_store().clone()  # type: ignore[attr-defined]
    return store


def everywhere(devices: Sequence[object]) -> int:
    """How many devices all processes have, of which this one has these."""
    return processes() * len(devices)


def own(parts: Sequence[T]) -> Sequence[T]:
    """The share of this process in what is there for each device, in the order of all devices."""
    share = len(parts) // processes()
    rank = dist.get_rank() if dist.is_initialized() else 0
    return parts[rank * share : (rank + 1) * share]


def everyones(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """The tensors of all devices, on the first of this process's; all are of one shape."""
    if processes() == 1:
        return tensors
    ours = torch.stack([tensor.to(tensors[0].device) for tensor in tensors])
    found = [torch.empty_like(ours) for _ in range(processes())]
    dist.all_gather(found, ours)
    return torch.cat(found).unbind()


def joined(rows: Array) -> Array:
    """What all processes have as rows (n, ...), one after the other; each has its own n."""
    if processes() == 1:
        return rows
    counts = gathered_values(len(rows))
    padded = np.zeros((max(counts), *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    found = [torch.empty(padded.shape, dtype=torch.from_numpy(padded).dtype) for _ in counts]
    dist.all_gather(found, torch.from_numpy(padded))
    return np.concatenate([each.numpy()[:n] for each, n in zip(found, counts, strict=True)])


def same_on_every_host(weights: Weights, share: int) -> Weights:
    """These weights, once all processes, of `share` devices each, have the same bit for bit.

    Digests travel instead of weights. Raises RunError that names the replica and the tensor.
    """
    if processes() == 1:
        return weights
    digests = [hashlib.sha256(values.tobytes()).digest()[:8] for values in weights.values()]
    ours = torch.frombuffer(bytearray(b"".join(digests)), dtype=torch.int64)
    found = [torch.empty_like(ours) for _ in range(processes())]
    dist.all_gather(found, ours)
    for rank, theirs in enumerate(found):
        for name, same in zip(weights, (theirs == found[0]).tolist(), strict=True):
            if not same:
                raise diverged(name, rank * share)
    return weights


def gathered_values(value: Any) -> list[Any]:
    """What each process of the group has given, by rank: JSON of at most LONGEST bytes."""
    if processes() == 1:
        return [value]
    ours = torch.frombuffer(bytearray(json.dumps(value).encode().ljust(LONGEST)), dtype=torch.uint8)
    found = [torch.empty_like(ours) for _ in range(processes())]
    dist.all_gather(found, ours)
    return [json.loads(each.numpy().tobytes()) for each in found]
