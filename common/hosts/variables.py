"""What the environment says: numbers, hosts and ports, each read strictly or refused in a line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv6Address, ip_address
from typing import Final

from common.backends.devices import Process
from common.base.errors import RequestError

Environ = Mapping[str, str]
Address = tuple[str, int]
"""A host, by name or by IP address without brackets, and a port."""

IGNORE: Final = "or let --launcher none ignore the environment"
"""The way out that every message ends with."""

FREE: Final = range(61000, 65536)
"""Ports that Linux gives to nobody who does not ask for one: 60999 is the last that it gives."""


@dataclass(frozen=True)
class Launched:
    """What a launcher has told a process.

    `launcher` in words, for messages and the record; empty if there is none, or one process alone.
    The first process listens at `coordinator`, a host and a port; None if there is one process.
    Where a launcher does not tell which of them share a host, each seems to be alone on its own.
    """

    launcher: str = ""
    process: Process = field(default_factory=Process)
    coordinator: Address | None = None


class NothingToDoError(Exception):
    """The work that a process has been started for is done by others. Exit status 0."""

    status = 0


def shown(value: str | None) -> str:
    """A value for a message: one short line, whatever it is."""
    text = value or ""
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def needed(environ: Environ, name: str, sign: str) -> str:
    """The value of a variable that has to be there because `sign` is. Raises RequestError."""
    if value := environ.get(name):
        return value
    raise RequestError(f"{sign} is set, but not {name}: set both, {IGNORE}")


def number(value: str | None) -> int | None:
    """A whole number of at most ten digits; None if it is something else."""
    return int(value) if value and re.fullmatch("[0-9]{1,10}", value) else None


def pair(environ: Environ, sign: str, names: tuple[str, str], starter: str) -> tuple[int, int]:
    """A rank and the number of all, from the variables of these two names.

    Raises RequestError if they do not go together; `sign` is the variable that asks for them.
    """
    rank, count = (environ.get(name) for name in names)
    first, second = number(rank), number(count)
    if first is None or second is None or first >= second:
        raise RequestError(
            f"{sign} is set, but {names[0]} {shown(rank)} of {names[1]} {shown(count)} is no "
            f"process that {starter} would start: ranks begin at 0 and end below the number of "
            f"processes, {IGNORE}"
        )
    return first, second


def host_of(value: str, source: str) -> str:
    """A host by name or IP address; an IPv6 address may stand in brackets. Raises RequestError."""
    host = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    if ":" not in host and value == host and re.fullmatch("[A-Za-z0-9_.-]{1,253}", host):
        return host
    try:
        IPv6Address(host)
    except AddressValueError:
        raise RequestError(
            f"{source} {shown(value)} is not a host: give a name or an IP address"
        ) from None
    return host


def is_loopback(host: str) -> bool:
    """Whether a host, by name or IP address, is each machine itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def port_of(value: str, source: str) -> int:
    """A port. Raises RequestError."""
    port = number(value) or 0
    if not 1 <= port <= 65535:
        raise RequestError(f"{source} {shown(value)} is not a port: give a number from 1 to 65535")
    return port


def address_of(value: str, source: str) -> Address:
    """HOST:PORT, an IPv6 address in brackets. Raises RequestError."""
    host, colon, port = value.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        raise RequestError(
            f"{source} {shown(value)} is not HOST:PORT: give both, and an IPv6 address in brackets"
        )
    return host_of(host, source), port_of(port, source)


def free_port(number: int) -> int:
    """A port that follows from a number, among those that nobody is given by chance."""
    return FREE[number % len(FREE)]


def local(hosts: list[str], rank: int, source: str) -> tuple[int, int]:
    """A process's rank on its host, and how many are there; `hosts` has the host of each, by rank.

    Raises RequestError if there are not as many on each host.
    """
    if len({hosts.count(host) for host in hosts}) > 1:
        raise RequestError(
            f"{source} has more processes on one host than on another: start the same number"
        )
    return hosts[:rank].count(hosts[rank]), hosts.count(hosts[rank])
