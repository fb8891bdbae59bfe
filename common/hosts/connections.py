"""How processes of a run reach each other by TCP: who belongs to it, and at which address.

Frameworks connect processes at other ports, too, and behind a firewall they would wait for minutes
without a word. So `require_reach` tries that before.
"""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final

from common.backends.devices import LOOPBACK, Process
from common.base.control import Channel, Message
from common.base.errors import RequestError, RunError, StoppedError
from common.base.failures import Failure
from common.base.signals import Stop
from common.hosts.launchers import BY_HAND, Launched

CONNECT_TIMEOUT: Final = 10
"""Seconds in which a host answers that it is there."""

ENOUGH: Final = 2
"""Seconds of one try to connect to the first process."""

LOOK: Final = 0.2
"""Seconds between two tries."""


@dataclass(frozen=True)
class Meeting:
    """One of the processes of a run, which meets all others within `limit` seconds.

    `asked` is what all have to be asked alike; `notice` tells which are missing.
    """

    here: Launched
    asked: Message
    notice: Callable[[str], None]
    limit: float

    @property
    def asked_by(self) -> str:
        """What asks for other processes, if flags do not: variables may be left over from a job."""
        if self.here.launcher == BY_HAND:
            return ""
        return f", as the environment says ({self.here.launcher}); --launcher none ignores it"

    def hello(self) -> Message:
        """What the process says of itself when it comes; the first one adds others' addresses."""
        about = {"rank": self.here.process.rank, "host": socket.gethostname(), "asked": self.asked}
        return {**about, "address": LOOPBACK}

    def listener(self) -> socket.socket:
        """Takes the connections of others. Raises RequestError if the port is in use."""
        _, port = self.here.coordinator
        try:
            return socket.create_server(("", port))
        except OSError as error:
            raise RequestError(
                f"processes cannot connect at port {port} of this host ({error.strerror}): "
                "name another one in --coordinator"
            ) from None

    def reach(self, stop: Stop) -> Channel:
        """A channel to the first process, which has let this one in.

        Raises RunError if there is none in time, RequestError if it refuses, and StoppedError.
        """
        host, port = self.here.coordinator
        limit = time.monotonic() + self.limit
        while not stop.asked:
            try:
                channel = channel_by(socket.create_connection((host, port), ENOUGH))
                channel.send(**self.hello())
                answers = channel.connection.poll(CONNECT_TIMEOUT)
                if not answers or (answer := channel.receive()) is None:
                    raise OSError("no process of a run answers")
            except OSError as error:
                if time.monotonic() > limit:
                    raise RunError(
                        f"{name_of(self.here.process.rank, socket.gethostname())} cannot reach "
                        f"the first process at {host}:{port} ({error.strerror or error}) within "
                        f"{self.limit:g} seconds: start it{self.asked_by}"
                    ) from None
                time.sleep(LOOK)
            else:
                if refusal := answer.get("ended"):
                    raise Failure(*refusal).error()
                return channel
        raise StoppedError("stopped before all had started", status=stop.status)


def channel_by(connection: socket.socket) -> Channel:
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Channel(Connection(connection.detach()))


def name_of(rank: int, host: str) -> str:
    return f"process {rank} on {host}"


def require_reach(process: Process) -> None:
    """Tries to reach each other host at a port that the system chooses. All call it.

    Raises RunError that names the host that cannot be reached.
    """
    if len(set(process.hosts)) == 1:
        return
    address = process.addresses[process.rank]
    try:
        server = socket.create_server((address, 0), backlog=process.count)
    except OSError as error:
        raise RunError(
            f"others see this host at {address}, which is not its own ({error.strerror}): "
            "give in --coordinator an address of the network that the hosts share"
        ) from None
    with server:
        ports = process.gather(server.getsockname()[1])
        first_on = {host: process.hosts.index(host) for host in process.hosts}
        for host, rank in sorted(first_on.items()):
            if host == process.hosts[process.rank]:
                continue
            target = process.addresses[rank], ports[rank]
            try:
                socket.create_connection(target, timeout=CONNECT_TIMEOUT).close()
            except OSError as error:
                raise RunError(
                    f"cannot reach {name_of(rank, host)} at {target[0]}, port {target[1]} "
                    f"({error.strerror or error}): open all ports between the hosts"
                ) from None
        process.gather(None)  # until then, others may still try to reach this one
