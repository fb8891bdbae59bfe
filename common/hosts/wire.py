"""Messages between the processes of a run: JSON, one a line, over TCP. Nothing is unpickled.

Frameworks connect processes at other ports, too, and behind a firewall they would wait for minutes
without a word. So `require_reach` tries that before.
"""

import json
import socket
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import Any, Final

from common.backends.devices import Process
from common.base.endings import KILLED, Ending, from_plain
from common.base.errors import RunError
from common.base.pulse import FROZEN

GONE: Final = "is gone: it was killed, or its host is off"
"""What is said of a process whose connection has ended."""

SILENT: Final = f"{FROZEN}, or its host is gone"
"""What is said of one whose connection is silent."""

LONGEST: Final = 1 << 20
"""Bytes of a message: more than any of ours has, and no burden if they come from a stranger."""

SEND_TIMEOUT: Final = 5
"""Seconds in which a few bytes can be sent to a process that lives."""

CONNECT_TIMEOUT: Final = 10
"""Seconds in which a host answers that it is there."""

Message = dict[str, Any]


class Wire:
    """One end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        """Takes over a connection that is there."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(SEND_TIMEOUT)
        self.connection, self.rest, self.closed = connection, b"", False
        self.inbox: list[Message] = []

    def fileno(self) -> int:
        """What `select` waits for."""
        return self.connection.fileno()

    def send(self, **message: Any) -> None:
        """Sends a message; nothing happens if the other end is gone, as `receive` tells."""
        if not self.closed:
            try:
                self.connection.sendall(json.dumps(message).encode() + b"\n")
            except OSError:
                self.closed = True

    def receive(self) -> Iterator[Message]:
        """The messages that have come since, once there are some or none will come any more.

        `closed` tells which. Once something else has come, nothing more is read.
        """
        if not self.inbox:
            self._read()
        while self.inbox:
            yield self.inbox.pop(0)

    def _read(self) -> None:
        try:
            found = self.connection.recv(1 << 16)
        except OSError:
            found = b""
        *lines, self.rest = (self.rest + found).split(b"\n")
        try:
            messages = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            messages = [None]
        self.closed = self.closed or not found or len(self.rest) > LONGEST
        if all(isinstance(message, dict) for message in messages):
            self.inbox += messages
        else:
            self.closed = True

    def close(self) -> None:
        """Ends the connection."""
        self.closed = True
        self.connection.close()


def address(connection: socket.socket, end: str) -> str:
    """The IP address of one end of a connection: "ours" or "theirs"."""
    found = connection.getsockname() if end == "ours" else connection.getpeername()
    return str(found[0]).removeprefix("::ffff:")


def reachable(found: str, seen: Iterable[str]) -> str:
    """An address, or the first one that others see if no other host can reach this one by it."""
    outside = (each for each in seen if not ip_address(each).is_loopback)
    return next(outside, found) if ip_address(found).is_loopback else found


def listener(port: int) -> socket.socket:
    """What takes connections at a port, by IPv4 and, where there is any, IPv6. Raises OSError."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def name_of(rank: int, host: str) -> str:
    """What a process is called."""
    return f"process {rank} on {host}"


def failure_in(told: Message) -> Ending:
    """Why all have to end."""
    joint = " " if told["order"] == KILLED else ": "
    return from_plain(told, f"{name_of(told['rank'], told['host'])}{joint}")


def require_reach(process: Process) -> None:
    """Tries to reach each other host at a port that the system chooses. All call it.

    Raises RunError that names the host that cannot be reached.
    """
    if len(set(process.hosts)) == 1:
        return
    here, mine = process.addresses[process.rank], process.hosts[process.rank]
    family = socket.AF_INET6 if ":" in here else socket.AF_INET
    try:
        taking = socket.create_server((here, 0), family=family, backlog=process.count)
    except OSError as error:
        raise RunError(
            f"others see this host at {here}, which is not its own ({error.strerror}): "
            "give in --coordinator an address of the network that the hosts share"
        ) from None
    with taking:
        ports = process.gather(taking.getsockname()[1])
        for host in sorted({*process.hosts} - {mine}):
            rank = process.hosts.index(host)
            there = process.addresses[rank], ports[rank]
            try:
                socket.create_connection(there, timeout=CONNECT_TIMEOUT).close()
            except OSError as error:
                raise RunError(
                    f"cannot reach {name_of(rank, host)} at {there[0]}, port {there[1]} "
                    f"({error.strerror or error}): open all ports between the hosts"
                ) from None
        process.gather(None)  # until then, others may still try to reach this one
