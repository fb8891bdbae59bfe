"""The processes of a run, and their collectives, by Gloo on CPUs and NCCL on GPUs."""

import gc
import json
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

import torch

# Imported while a group is up, as DistributedDataParallel does when this is not yet there, its
# default arguments would hold that group, and the threads of it, until the process aborts on them.
import torch.distributed.nn
from torch import distributed as dist

from common.backends.devices import ALONE, DeviceRequest, Process
from common.base.arrays import Array
from frameworks.pytorch import PRELOAD
from frameworks.pytorch.interfaces import interface_used
from frameworks.pytorch.processes import in_processes

LONGEST: Final = 1024
"""Bytes of a value that processes gather."""

PEER_TIMEOUT = timedelta(seconds=120)
"""How long a process waits for another one that neither answers nor ends."""


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: object,
    process: Process = ALONE,
) -> None:
    """Calls `worker` here, in a group of all processes if there are several."""
    if process.count == 1:
        worker(process)
    else:
        launch_processes(worker, 1, process)


def launch_processes(
    worker: Callable[[Process], None], count: int, process: Process = ALONE
) -> None:
    """Calls `worker` in `count` processes for each of those that a launcher has started.

    Raises RequestError or RunError as a worker did, and RunError if a process died; all others are
    ended then.
    """
    parts = [_part(process, count, index) for index in range(count)]
    with interface_used(process):
        if process.count * count == 1:
            run_in_group(worker, process, dist.HashStore())
            return
        address, port, store = rendezvous(process)
        if count == 1:
            run_in_group(worker, process, store or (address, port))
        else:  # the store stays in this process
            in_processes(partial(run_in_group, worker, store=(address, port)), parts, PRELOAD)


def _part(process: Process, count: int, index: int) -> Process:
    """One of the `count` processes that a process of a launcher starts."""
    return Process(
        rank=process.rank * count + index,
        count=process.count * count,
        local_rank=process.local_rank * count + index,
        local_count=process.local_count * count,
        hosts=tuple(host for host in process.hosts for _ in range(count)),
        addresses=tuple(address for address in process.addresses for _ in range(count)),
    )


def rendezvous(process: Process) -> tuple[str, int, dist.Store | None]:
    """Where all processes of a run find each other, and the store there, if this one keeps it.

    All processes that a launcher has started call it. On one host, no other host can come there.
    """
    address = process.address(0)
    if process.rank:
        return address, process.gather(0)[0], None
    # The system chooses the port, so two runs never ask for the same one.
    port, listener = 0, None
    if not process.addresses:  # by itself a store listens at every address
        alone = socket.create_server((address, 0))
        port, listener = alone.getsockname()[1], alone.detach()
    store = dist.TCPStore(
        address, port, is_master=True, wait_for_workers=False, master_listen_fd=listener
    )
    process.gather(store.port)
    return address, store.port, store


def run_in_group(
    worker: Callable[[Process], None], process: Process, store: dist.Store | tuple[str, int]
) -> None:
    """Calls `worker` in one of several processes, which find each other by the store."""
    dist.init_process_group(
        # By default a build for GPUs uses NCCL only, which has no tensors on a CPU.
        "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
        store=dist.TCPStore(*store, is_master=False) if isinstance(store, tuple) else store,
        rank=process.rank,
        world_size=process.count,
        timeout=PEER_TIMEOUT,
    )
    try:
        worker(replace(process, gather=gathered_values))
    finally:
        # A wrapper that outlives its group may abort the process at its end.
        gc.collect()
        dist.destroy_process_group()


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
