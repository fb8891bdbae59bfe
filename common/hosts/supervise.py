"""Every process that a launcher has started: it meets the others, and has a child do the work.

So it hears by TCP that another one is lost, whatever a framework waits for, and ends its child.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final

from common.backends.devices import LOOPBACK, Process
from common.base.children import end, end_frozen
from common.base.control import (
    KILLED,
    Channel,
    Child,
    Failure,
    Group,
    Member,
    Message,
    failure_by,
    raise_failure,
    start_member,
)
from common.base.errors import RequestError, RunError, StoppedError
from common.base.signals import Stop, stoppable
from common.hosts.launchers import BY_HAND, Launched

CONNECT_TIMEOUT: Final = 10
"""Seconds in which a host answers that it is there."""

NOTICE: Final = 2
"""Seconds after which the first process says which ones are missing."""

NEW: Final = -1
"""In the place of a rank: a process that has come."""

Work = Callable[[Process], None]


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
        _, port = self.here.coordinator
        try:
            return socket.create_server(("", port))
        except OSError as error:
            what = f"processes cannot connect at port {port} of this host ({error.strerror})"
            raise RequestError(f"{what}: name another one in --coordinator") from None

    def reach(self, stop: Stop) -> Channel:
        """A channel to the first process. Raises RunError, RequestError or StoppedError."""
        host, port = self.here.coordinator
        limit = time.monotonic() + self.limit
        while not stop.asked:
            try:
                channel = channel_by(socket.create_connection((host, port), timeout=2))
                channel.send(**self.hello())
                answers = channel.connection.poll(CONNECT_TIMEOUT)
                if not answers or (answer := channel.receive()) is None:
                    raise OSError("no process of a run answers")
            except OSError as error:
                if time.monotonic() > limit:
                    name = name_of(self.here.process.rank, socket.gethostname())
                    first = f"the first process at {host}:{port} ({error.strerror or error})"
                    late = f"{name} cannot reach {first} within {self.limit:g} seconds"
                    raise RunError(f"{late}: start it{self.asked_by}") from None
                time.sleep(0.2)
            else:
                if refusal := answer.get("ended"):
                    raise Failure(*refusal).error()
                return channel
        raise StoppedError("stopped before all had started", status=stop.status)


def with_others(meeting: Meeting, work: Work) -> None:
    """Does the work as one of several processes. Raises RunError, RequestError or StoppedError."""
    process = meeting.here.process
    with stoppable() as stop:
        listener = None if process.rank else meeting.listener()
        name = name_of(process.rank, socket.gethostname())
        child = start_member(name, partial(train, process, work))  # before there are threads
        try:
            if listener:
                group: Group = Hub(meeting, listener, child, stop)
            else:
                first = name_of(0, meeting.here.coordinator[0])
                group = Group({process.rank: child}, stop, meeting.reach(stop), first)
            raise_failure(group.run(), stop)
        finally:
            end([child.process])


def train(process: Process, work: Work, member: Member) -> None:
    """What the child does, once all others are known and can be reached."""
    parent = os.getppid()
    end_frozen(parent, lambda: os.getppid() == parent)
    met = member.inbox.get()
    hosts, addresses = tuple(met["hosts"]), tuple(met["addresses"])
    here = hosts[process.rank]  # no launcher has to tell which processes share a host
    process = replace(
        process,
        local_rank=hosts[: process.rank].count(here),
        local_count=hosts.count(here),
        hosts=hosts,
        addresses=addresses,
        gather=member.gather,
    )
    require_reach(process)
    work(process)


def channel_by(connection: socket.socket) -> Channel:
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Channel(Connection(connection.detach()))


def name_of(rank: int, host: str) -> str:
    return f"process {rank} on {host}"


def require_reach(process: Process) -> None:
    """Connects to each other host. Raises RunError that names one that cannot be reached."""
    # Behind a firewall, frameworks would wait for minutes without a word.
    if len(set(process.hosts)) == 1:
        return
    address = process.addresses[process.rank]
    try:
        server = socket.create_server((address, 0), backlog=process.count)
    except OSError as error:
        what = f"others see this host at {address}, which is not its own ({error.strerror})"
        how = "give in --coordinator an address of the network that the hosts share"
        raise RunError(f"{what}: {how}") from None
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
                where = f"{name_of(rank, host)} at {target[0]}, port {target[1]}"
                what = f"cannot reach {where} ({error.strerror or error})"
                raise RunError(f"{what}: open all ports between the hosts") from None
        process.gather(None)  # until then, others may still try to reach this one


class Hub(Group):
    """All processes of a run, of which the first one is a child of this process.

    It lets them in until all have come, hands on what they gather, and sends and hears heartbeats.
    Once one process has failed, or is silent, it tells all others why they have to end.
    """

    def __init__(self, meeting: Meeting, listener: socket.socket, child: Child, stop: Stop) -> None:
        super().__init__({0: child}, stop)
        self.meeting, self.listener, self.began = meeting, listener, time.monotonic()
        self.count = self.noticed = meeting.here.process.count
        self.hellos: dict[int, Message] = {0: meeting.hello()}
        self.values: dict[int, list[Any]] = {0: []}
        self.open: set[int] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def run(self) -> Failure | None:
        """Why the run has failed, once all others know; None if it went well."""
        failure, (culprit, _) = super().run(), self.cause()
        named = failure
        if failure and failure.order != KILLED and culprit in self.names:
            named = failure._replace(message=f"{self.names[culprit]}: {failure.message}")
        for rank, channel in self.channels.items():  # the one that failed says so itself
            channel.send(ended=failure if rank == culprit else named)
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        limit = time.monotonic() + 5  # seconds in which all others take note
        while self.open and time.monotonic() < limit:  # else they would take this one for lost
            self.listen()
        return failure if culprit == 0 else named

    def _accept(self) -> None:
        with suppress(OSError):  # no more are let in
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._admit, args=(connection,), daemon=True).start()

    def _admit(self, connection: socket.socket) -> None:
        """Asks who has come; a stranger may keep this thread waiting."""
        with suppress(OSError):
            ends = {"address": connection.getpeername()[0], "seen": connection.getsockname()[0]}
            channel = channel_by(connection)
            if hello := channel.receive():
                self.mail.put((NEW, {**hello, **ends, "channel": channel}))

    def hear(self, rank: int, message: Message | None) -> None:
        """Lets a process in, or hands on what all of them have given."""
        if rank == NEW and message:
            self._welcome(message)
            return
        super().hear(rank, message)
        if message is None:
            self.open.discard(rank)
        elif "stop" in message:
            self.ask_to_stop(rank)
        elif "give" in message:
            self.values[rank].append(message["give"])
            if all(self.values.values()):
                self.tell(got=[self.values[rank].pop(0) for rank in range(self.count)])

    def _welcome(self, hello: Message) -> None:
        """Lets a process in that belongs to the run, and tells another one why not."""
        channel: Channel = hello["channel"]
        if refusal := self._refusal(hello):
            channel.send(ended=failure_by(RequestError(refusal)))
            return
        rank = hello["rank"]
        self.channels[rank], self.hellos[rank], self.values[rank] = channel, hello, []
        self.missed[rank] = 0
        self.open.add(rank)
        channel.send(alive=True)  # it is let in
        self.listen_to(rank, channel, name_of(rank, hello["host"]))
        if not self._missing():
            self._begin()

    def _refusal(self, hello: Message) -> str:
        rank, asked, expected = hello.get("rank"), hello.get("asked"), self.meeting.asked
        host, here = hello.get("host"), self.hellos[0]["host"]
        if rank not in range(self.count) or not isinstance(asked, dict):
            return f"there is no process {rank} of {self.count} here"
        if rank in self.hellos:
            return f"process {rank} has come already, on {self.hellos[rank]['host']}"
        for name in {**expected, **asked}:
            if (value := asked.get(name)) != (known := expected.get(name)):
                unlike = f"{name} is {value} on {host}, and {known} on {here}"
                return f"{unlike}: start all processes alike"
        return ""

    def _begin(self) -> None:
        hellos = [self.hellos[rank] for rank in range(self.count)]
        hosts = [hello["host"] for hello in hellos]
        if len({hosts.count(host) for host in hosts}) > 1:
            counts = ", ".join(f"{hosts.count(host)} on {host}" for host in dict.fromkeys(hosts))
            error = RequestError(f"processes: {counts}: start the same number on each host")
            self.end(NEW, failure_by(error))  # by the fault of none of them
            return
        # Others reach a process of this very host at the address that they see.
        seen = [hello["seen"] for hello in hellos[1:] if not hello["seen"].startswith("127.")]
        addresses = [hello["address"] for hello in hellos]
        if seen:
            addresses = [seen[0] if x.startswith("127.") else x for x in addresses]
        self.tell(got={"hosts": hosts, "addresses": addresses})

    def _missing(self) -> list[int]:
        return [rank for rank in range(self.count) if rank not in self.hellos]

    def beat(self) -> None:
        """Also tells all that this process lives, and the user which are missing."""
        super().beat()
        self.tell(alive=True)
        if not (missing := self._missing()):
            return
        ranks, seconds = ", ".join(map(str, missing)), time.monotonic() - self.began
        if seconds > NOTICE and len(missing) < self.noticed:
            self.noticed = len(missing)
            come = f"{self.count - len(missing)} of {self.count} processes have come"
            self.meeting.notice(f"{come}; waiting for {ranks}{self.meeting.asked_by}")
        if seconds > self.meeting.limit:
            late = f"process {ranks} of {self.count} did not start in time: start all"
            self.end(NEW, failure_by(RunError(f"{late}{self.meeting.asked_by}")))

    def ask_to_stop(self, rank: int = 0) -> None:
        """Asks all to stop in order; if not all have come, they need not wait any longer."""
        if not self._missing():
            self.stopping = True
        elif rank not in self.ends:
            self.end(rank, failure_by(StoppedError("stopped before all had started")))
