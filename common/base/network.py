"""How others are reached, and which of this machine's network interfaces has an address."""

import fcntl
import socket
import struct
import sys
from contextlib import suppress
from typing import Final

SIOCGIFADDR: Final = 0xC0206921 if sys.platform == "darwin" else 0x8915
"""The request for the IPv4 address of an interface, on macOS and on Linux."""


def connected(host: str, port: int, timeout: float) -> socket.socket:
    """A connection to a host, by IPv4 if it can be: not all that meet there know IPv6.

    Raises OSError.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    errors = []
    for *_, (address, *_) in sorted(found, key=lambda each: each[0] != socket.AF_INET):
        try:
            return socket.create_connection((str(address), port), timeout)
        except OSError as error:
            errors.append(error)
    raise errors[0]


def interface_of(address: str) -> str | None:
    """The name of the interface with this IPv4 address; None if it cannot be told."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # it has no IPv4 address
                query = struct.pack("256s", name.encode()[:15])
                found = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, query)
                if socket.inet_ntoa(found[20:24]) == address:
                    return name
    return None
