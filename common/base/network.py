"""How others are reached, and which of this machine's network interfaces has an address."""

import fcntl
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final

SIOCGIFADDR: Final = 0xC0206921 if sys.platform == "darwin" else 0x8915
"""The request for the IPv4 address of an interface, on macOS and on Linux."""

LOOPBACK: Final = "127.0.0.1"
"""The address at which a machine reaches only itself."""

IPV6: Final = Path("/proc/net/if_inet6")
"""Where Linux lists the interfaces that have an IPv6 address."""


def family(address: str) -> socket.AddressFamily:
    """IPv6 or IPv4."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


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


def interfaces() -> Iterator[tuple[str, str]]:
    """The network interfaces of this machine, each with an IP address that it has.

    Those of IPv6 are known only on Linux.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # it has no IPv4 address
                query = struct.pack("256s", name.encode()[:15])
                found = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, query)
                yield name, socket.inet_ntoa(found[20:24])
    for line in IPV6.read_text().splitlines() if IPV6.exists() else ():
        digits, *_, name = line.split()
        yield name, str(IPv6Address(bytes.fromhex(digits)))


def interface_of(address: str) -> str | None:
    """The name of the interface with this IP address; None if it cannot be told."""
    wanted = address.partition("%")[0]
    return next((name for name, found in interfaces() if found == wanted), None)
