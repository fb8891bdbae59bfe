"""The first process of a run over several hosts: through it all processes hear of each other.

It lets them in until all have come, hands on what they gather, and sends and hears heartbeats. Once
one process has failed, or is silent, it tells all others why they have to end.
"""

import socket
import threading
import time
from contextlib import suppress
from typing import Any, Final

from common.base.control import Channel, Child, Group, Message
from common.base.errors import RequestError, RunError, StoppedError
from common.base.failures import KILLED, Failure, said
from common.base.signals import Stop
from common.hosts.connections import Meeting, channel_by, name_of, reachable

FAREWELL: Final = 5
"""Seconds in which all others take note of the end."""

NOTICE: Final = 2
"""Seconds after which it says which processes are missing."""

NEW: Final = -1
"""In the place of a rank: a process that has come."""


class Hub(Group):
    """All processes of a run, of which the first one is a child of this process."""

    def __init__(self, meeting: Meeting, listener: socket.socket, child: Child, stop: Stop) -> None:
        """The first process is there; all others come by the listener."""
        super().__init__({0: child}, stop)
        self.meeting, self.listener, self.hello = meeting, listener, meeting.hello()
        self.count = self.noticed = meeting.here.process.count
        self.began, self.begun = time.monotonic(), False
        self.hellos: dict[int, Message] = {0: self.hello}
        self.values: dict[int, list[Any]] = {0: []}
        self.open: set[int] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def run(self) -> Failure | None:
        """Why the run has failed, once all others know; None if it went well."""
        failure, (culprit, _) = super().run(), self.cause()
        told = failure
        if failure and failure.order != KILLED and culprit in self.names:
            told = failure._replace(message=f"{self.names[culprit]}: {failure.message}")
        for rank, channel in self.channels.items():  # the one that failed says so itself
            channel.send(ended=failure if rank == culprit else told)
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        limit = time.monotonic() + FAREWELL
        while self.open and time.monotonic() < limit:  # else they would take this one for lost
            self.listen()
        return failure if culprit == 0 else told

    def _accept(self) -> None:
        with suppress(OSError):  # no more are let in
            while True:
                taken, _ = self.listener.accept()
                threading.Thread(target=self._admit, args=(taken,), daemon=True).start()

    def _admit(self, taken: socket.socket) -> None:
        """Asks who has come; a stranger may keep this thread waiting."""
        with suppress(OSError):
            ends = {"address": taken.getpeername()[0], "seen": taken.getsockname()[0]}
            channel = channel_by(taken)
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
            self._stop(rank)
        elif "give" in message:
            self.values[rank].append(message["give"])
            if all(self.values.values()):
                self.tell(got=[self.values[each].pop(0) for each in range(self.count)])

    def _welcome(self, hello: Message) -> None:
        """Lets a process in that belongs to the run, and tells another one why not."""
        channel: Channel = hello["channel"]
        if refusal := self._refusal(hello):
            channel.send(ended=said(RequestError(refusal)))
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
        """Why a process does not belong to the run; empty if it does."""
        rank, theirs, ours = hello.get("rank"), hello.get("asked"), self.hello["asked"]
        if rank not in range(self.count) or not isinstance(theirs, dict):
            return f"there is no process {rank} of {self.count} here"
        if rank in self.hellos:
            return f"process {rank} has come already, on {self.hellos[rank]['host']}"
        for name in {**ours, **theirs}:
            if ours.get(name) != theirs.get(name):
                return (
                    f"{name} is {theirs.get(name)} on {hello.get('host')}, and {ours.get(name)} "
                    f"on {self.hello['host']}: start all processes alike"
                )
        return ""

    def _begin(self) -> None:
        """All have come: each is told of all others."""
        hellos = [self.hellos[rank] for rank in range(self.count)]
        hosts = [hello["host"] for hello in hellos]
        if len({hosts.count(host) for host in hosts}) > 1:
            counts = ", ".join(f"{hosts.count(host)} on {host}" for host in dict.fromkeys(hosts))
            self._refuse(RequestError(f"processes: {counts}: start the same number on each host"))
            return
        # Others reach a process of this very host at the address that they see.
        seen = [hello["seen"] for hello in hellos[1:]]
        addresses = [reachable(hello["address"], seen) for hello in hellos]
        self.begun = True
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
            self._refuse(RunError(f"{late}{self.meeting.asked_by}"))

    def ask_to_stop(self) -> None:
        """A signal has come to this process."""
        self._stop(0)

    def _stop(self, rank: int) -> None:
        """Asks all to stop in order; if not all have come, they need not wait any longer."""
        if self.begun:
            self.stopping = True
        else:
            self.end(rank, said(StoppedError("stopped before all had started")))

    def _refuse(self, error: RequestError | RunError) -> None:
        """Ends all of them, by the fault of none of them."""
        self.end(NEW, said(error))
