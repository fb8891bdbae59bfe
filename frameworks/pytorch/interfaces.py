"""The network interfaces by which Gloo and NCCL connect."""

import fcntl
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import torch

from common.backends.devices import Process
from common.base.errors import RequestError

GLOO: Final = "GLOO_SOCKET_IFNAME"
NCCL: Final = "NCCL_SOCKET_IFNAME"
"""The variables that name the network interfaces by which Gloo and NCCL connect."""

SIOCGIFADDR: Final = 0xC0206921 if sys.platform == "darwin" else 0x8915
"""The request for the IPv4 address of an interface, on macOS and on Linux."""


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
