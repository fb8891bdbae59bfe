"""The network interfaces of this machine, and their IPv4 addresses."""

import fcntl
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

SIOCGIFADDR: Final = 0xC0206921 if sys.platform == "darwin" else 0x8915
"""The request for the IPv4 address of an interface, on macOS and on Linux."""


def interfaces() -> Iterator[tuple[str, str]]:
    """The network interfaces of this machine, each with an address that it has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # it has no IPv4 address
                query = struct.pack("256s", name.encode()[:15])
                found = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, query)
                yield name, socket.inet_ntoa(found[20:24])


def interface_of(address: str) -> str | None:
    """The name of the interface with this IP address; None if it cannot be told."""
    return next((name for name, found in interfaces() if found == address), None)
