"""How a run gets its processes, and where they become members of PyTorch's group of them all."""

import fcntl
import gc
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

import torch

# Imported while a group is up, as DistributedDataParallel does when this is not yet there, its
# default arguments would hold that group, and the threads of it, until the process aborts on them.
import torch.distributed.nn
from torch import distributed as dist

from common.backends.devices import ALONE, DeviceRequest, Process
from common.base.errors import RequestError
from frameworks.pytorch import PRELOAD
from frameworks.pytorch.hosts import gathered_values
from frameworks.pytorch.processes import in_processes

GLOO: Final = "GLOO_SOCKET_IFNAME"
NCCL: Final = "NCCL_SOCKET_IFNAME"
"""The variables that name the network interfaces by which Gloo and NCCL connect."""

SIOCGIFADDR: Final = 0xC0206921 if sys.platform == "darwin" else 0x8915
"""The request for the IPv4 address of an interface, on macOS and on Linux."""

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


def interfaces() -> Iterator[tuple[str, str]]:
    """The network interfaces of this machine, each with an address that it has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # it has no IPv4 address
                query = struct.pack("256s", name.encode()[:15])
                reply = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, query)
                yield name, socket.inet_ntoa(reply[20:24])


def interface_of(address: str) -> str | None:
    """The name of the interface with this IP address; None if it cannot be told."""
    return next((name for name, other in interfaces() if other == address), None)


def require_interfaces(over_hosts: bool) -> None:
    """Raises RequestError if a variable names no network interface that has an address here.

    Gloo would say so in words of its own, once in each process.
    """
    here = list(dict.fromkeys(name for name, _ in interfaces()))
    gloo, nccl = (os.environ.get(name, "") for name in (GLOO, NCCL))
    wrong = ""
    if gloo and not set(gloo.split(",")) <= {*here}:
        wrong = f"{GLOO}={gloo}"
    elif nccl and over_hosts and torch.cuda.is_available() and not nccl.startswith("^"):
        begins = tuple(nccl.removeprefix("=").split(","))
        wrong = "" if any(interface.startswith(begins) for interface in here) else f"{NCCL}={nccl}"
    if wrong:
        raise RequestError(
            f"{wrong} names no network interface that has an address here, as {', '.join(here)}: "
            "set it right, or unset it"
        )


@contextmanager
def interface_used(process: Process) -> Iterator[None]:
    """In this context Gloo and, over hosts, NCCL use the interface that reaches this process.

    By themselves they take what the host's name resolves to: over hosts often 127.0.0.1, and on
    one host often an address that others can reach. Raises RequestError if the environment names
    an interface that this host does not have.
    """
    several = bool(process.addresses)
    name = interface_of(process.address(process.rank))
    variables = [GLOO, *([NCCL] if several else [])]
    require_interfaces(several)
    added = {v: name for v in variables if name and not os.environ.get(v)}
    os.environ.update(added)
    try:
        yield
    finally:
        for variable in added:
            os.environ.pop(variable, None)


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
