"""Where the processes of a run meet: each becomes a member of PyTorch's group of them all."""

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

import torch

# Imported while a group is up, as DistributedDataParallel does when this is not yet there, its
# default arguments would hold that group, and the threads of it, until the process aborts on them.
import torch.distributed.nn
from torch import distributed as dist

from common.backends.devices import Process
from common.base.network import interface_of
from frameworks.pytorch.hosts import gathered_values

PEER_TIMEOUT = timedelta(seconds=120)
"""How long a process waits for another one that neither answers nor ends."""


@dataclass(frozen=True)
class Rendezvous:
    """Where all processes of a run find each other.

    The first one keeps the `store` there; those that it starts are told where alone.
    """

    address: str
    port: int
    store: dist.Store | None = None

    @classmethod
    def of(cls, process: Process) -> "Rendezvous":
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
        os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
        os.environ.setdefault("NCCL_SOCKET_IFNAME", name)


def run_in_group(
    worker: Callable[[Process], None], process: Process, rendezvous: Rendezvous | None = None
) -> None:
    """Calls `worker` in one of several processes, which find each other there."""
    store = rendezvous.come() if rendezvous else dist.HashStore()
    dist.init_process_group(
        # By itself a build for GPUs takes NCCL alone, which knows no number on a CPU.
        "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
        store=store,
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
