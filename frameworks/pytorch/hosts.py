"""What processes on several hosts have to do with each other, by Gloo on CPUs and NCCL on GPUs."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed as dist

from common.backends.devices import ALONE, DeviceRequest, Process
from common.backends.environment import provide
from common.base.arrays import Array, Weights
from common.base.network import interface_of
from common.parallel.shards import diverged

T = TypeVar("T")

LONGEST: Final = 1024
"""Bytes of a value that processes gather."""


@dataclass(frozen=True)
class Meeting:
    """Where all processes of a run find each other. The first one keeps the `store` there."""

    address: str
    port: int
    store: dist.Store | None = None

    @classmethod
    def of(cls, process: Process) -> "Meeting":
        """Opened by the first of the processes that a launcher has started; all call it."""
        address = process.addresses[0] if process.addresses else "127.0.0.1"
        if process.rank:
            return cls(address, process.gather(0)[0])
        # The system chooses the port, so two runs never ask for the same one.
        store = dist.TCPStore(address, 0, None, is_master=True, wait_for_workers=False)
        process.gather(store.port)
        return cls(address, store.port, store)

    def come(self) -> dist.Store:
        """The store, for a process that comes."""
        return self.store or dist.TCPStore(self.address, self.port, is_master=False)


def use_interface(process: Process) -> None:
    """Lets Gloo and NCCL take the way by which the others reach this process.

    By themselves they take what the host's name resolves to, which is often 127.0.0.1.
    """
    if process.addresses and (name := interface_of(process.addresses[process.rank])):
        provide("GLOO_SOCKET_IFNAME", name)
        provide("NCCL_SOCKET_IFNAME", name)


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: object,
    process: Process = ALONE,
) -> None:
    """Calls `worker` here, in a group of all processes if there are several."""
    # PyTorch loads what starts processes only where there are some.
    from frameworks.pytorch.processes import launch_processes

    if process.count == 1:
        worker(process)
    else:
        launch_processes(worker, 1, process)


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
