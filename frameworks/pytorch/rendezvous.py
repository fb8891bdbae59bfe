"""Where the processes of a run meet: each becomes a member of PyTorch's group of them all."""

import gc
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

import torch

# Imported while a group is up, as DistributedDataParallel does when this is not yet there, its
# default arguments would hold that group, and the threads of it, until the process aborts on them.
import torch.distributed.nn
from torch import distributed as dist

from common.backends.devices import Process
from common.base.errors import RequestError
from common.base.network import family, interface_of, interfaces, loopback
from frameworks.pytorch.hosts import gathered_values

GLOO: Final = "GLOO_SOCKET_IFNAME"
NCCL: Final = "NCCL_SOCKET_IFNAME"
"""The variables that name the network interfaces by which Gloo and NCCL connect."""

PEER_TIMEOUT = timedelta(seconds=120)
"""How long a process waits for another one that neither answers nor ends."""


@dataclass(frozen=True)
class Rendezvous:
    """Where all processes of a run find each other; on one host, no other host can come there.

    The first one keeps the `store` there; those that it starts are told where alone.
    """

    address: str
    port: int
    store: dist.Store | None = None

    @classmethod
    def of(cls, process: Process) -> "Rendezvous":
        """Opened by the first of the processes that a launcher has started; all call it."""
        address = process.addresses[0] if process.addresses else loopback()
        if process.rank:
            return cls(address, process.gather(0)[0])
        # The system chooses the port, so two runs never ask for the same one.
        port, listener = 0, None
        if not process.addresses:  # by itself a store listens at every address
            alone = socket.create_server((address, 0), family=family(address))
            port, listener = alone.getsockname()[1], alone.detach()
        store = dist.TCPStore(
            address, port, is_master=True, wait_for_workers=False, master_listen_fd=listener
        )
        process.gather(store.port)
        return cls(address, store.port, store)

    def come(self) -> dist.Store:
        """The store, for a process that comes."""
        return self.store or dist.TCPStore(self.address, self.port, is_master=False)


def require_interfaces(over_hosts: bool) -> None:
    """Raises RequestError if a variable names no network interface that has an address here.

    Gloo would say so in words of its own, once in each process.
    """
    here = list(dict.fromkeys(name for name, _ in interfaces()))
    gloo, nccl = (os.environ.get(each, "") for each in (GLOO, NCCL))
    wrong = ""
    if gloo and not set(gloo.split(",")) <= {*here}:
        wrong = f"{GLOO}={gloo}"
    elif nccl and over_hosts and torch.cuda.is_available() and not nccl.startswith("^"):
        begins = tuple(nccl.removeprefix("=").split(","))
        wrong = "" if any(each.startswith(begins) for each in here) else f"{NCCL}={nccl}"
    if wrong:
        raise RequestError(
            f"{wrong} names no network interface that has an address here, as {', '.join(here)}: "
            "set it right, or unset it"
        )


@contextmanager
def interface_used(process: Process) -> Iterator[None]:
    """Meanwhile Gloo and, over hosts, NCCL take the way by which the others reach this process.

    By themselves they take what the host's name resolves to: over hosts often 127.0.0.1, and on
    one host often an address that others can reach. Raises RequestError if the environment names
    an interface that this host does not have, and RunError if it has no way to itself.
    """
    several = bool(process.addresses)
    name = interface_of(process.addresses[process.rank] if several else loopback())
    variables = [GLOO, *([NCCL] if several else [])]
    require_interfaces(several)
    added = {each: name for each in variables if name and not os.environ.get(each)}
    os.environ.update(added)
    try:
        yield
    finally:
        for each in added:
            os.environ.pop(each, None)


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
