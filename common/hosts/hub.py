"""The hub: a small process beside a run's first one, through which all hear of each other.

It lets them in until all have come, hands on what each gives, and hears every second that each
one lives. Once one has failed, or says nothing any more, it tells all others why they have to end.
"""

import select
import socket
import time
from collections.abc import Iterator
from typing import Any, Final

from common.base.endings import GRACE, REST, STOPPED, killed, to_plain
from common.base.pulse import BEAT, Watch
from common.hosts.wire import GONE, SILENT, Message, Wire, address, reachable

FAREWELL: Final = 5
"""Seconds in which all others take note of the end."""

DOUBT: Final = 3
"""As many words that have not come leave it open whether a process lives."""


class Hub:
    """Who has come, by rank, what they have given, and how they have ended.

    `first` is what the first process will say, `limit` is in seconds, in which all have to come.
    """

    def __init__(self, listener: socket.socket, count: int, first: Message, limit: float) -> None:
        """None has come yet."""
        self.listener, self.count, self.first = listener, count, first
        self.limit = time.monotonic() + limit
        self.strangers: set[Wire] = set()
        self.members: dict[int, Wire] = {}
        self.hellos: dict[int, Message] = {}
        self.given: dict[int, list[Any]] = {}
        self.failures: list[Message] = []
        self.done: set[int] = set()
        self.watch: Watch[int] = Watch([])
        self.decide = float("inf")
        self.over = False

    def run(self) -> None:
        """Serves until all have ended, and have been told so."""
        spoken = 0.0
        while not self.over:
            for wire in self._ready():
                for message in wire.receive():
                    self._hear(wire, message)
                if wire.closed:
                    self._lost(wire)
            if time.monotonic() - spoken >= BEAT:
                spoken = time.monotonic()
                self._tell_all(alive=True)
            self._look()
        self.listener.close()
        self._wait_for_all()

    def _ready(self) -> Iterator[Wire]:
        everyone: list[Any] = [self.listener, *self.strangers, *self.members.values()]
        ready, _, _ = select.select(everyone, [], [], BEAT / 4)
        for each in ready:
            if each is self.listener:
                self.strangers.add(Wire(self.listener.accept()[0]))
            else:
                yield each

    def _hear(self, wire: Wire, message: Message) -> None:
        if wire in self.strangers:
            self._welcome(wire, message)
            return
        if (rank := self._rank(wire)) is None:  # it was refused, and still speaks
            return
        self.watch.missed[rank] = DOUBT if message.get("quiet") else 0  # its trainer may be frozen
        if "give" in message:
            self.given[rank].append(message["give"])
            self._hand_on()
        elif "stop" in message:
            self._tell_all(stop=message["stop"])
        elif "failure" in message:
            self._fails(rank, message["failure"])
        elif "done" in message:
            self.done.add(rank)

    def _welcome(self, wire: Wire, hello: Message) -> None:
        """Lets a process in that belongs to the run, and tells another one why not."""
        self.strangers.discard(wire)
        if refusal := self._refusal(hello):
            wire.send(refused=refusal)
            wire.close()
            return
        rank = hello["rank"]
        hello["address"] = address(wire.connection, "theirs")
        self.members[rank], self.hellos[rank], self.given[rank] = wire, hello, []
        self.watch.heard(rank)
        missing = [each for each in range(self.count) if each not in self.members]
        if missing:
            self._tell_all(missing=missing)
        else:
            self._begin()

    def _refusal(self, hello: Message) -> str:
        """Why a process does not belong to the run; empty if it does."""
        rank, theirs, ours = hello.get("rank"), hello.get("asked"), self.first["asked"]
        there = isinstance(rank, int) and 0 <= rank < self.count
        if not there or not isinstance(theirs, dict):
            return f"there is no process {rank} of {self.count} here"
        if rank in self.members:
            return f"process {rank} has come already, on {self.hellos[rank]['host']}"
        for name in {**ours, **theirs}:
            if ours.get(name) != theirs.get(name):
                return (
                    f"{name} is {theirs.get(name)} on {hello.get('host')}, and {ours.get(name)} "
                    f"on {self.first['host']}: start all processes alike"
                )
        return ""

    def _begin(self) -> None:
        """All have come: each is told of all others."""
        # Others reach a process of this very host at the address that they see.
        seen = [address(self.members[rank].connection, "ours") for rank in range(1, self.count)]
        hellos = [self.hellos[rank] for rank in range(self.count)]
        for hello in hellos:
            hello["address"] = reachable(hello["address"], seen)
        names = ("host", "address")
        self._tell_all(everyone=[{name: each[name] for name in names} for each in hellos])

    def _hand_on(self) -> None:
        while len(self.given) == self.count and all(self.given.values()):
            self._tell_all(got=[self.given[rank].pop(0) for rank in range(self.count)])

    def _lost(self, wire: Wire) -> None:
        """A process is gone, which may have said why before."""
        rank = self._rank(wire)
        wire.close()
        self.strangers.discard(wire)
        if rank is not None:
            del self.members[rank]
            long = self.watch.missed.pop(rank, 0) > 3 * DOUBT  # its own host has ended it
            if rank not in self.done:
                self._fails(rank, to_plain(killed(SILENT if long else GONE)))

    def _fails(self, rank: int, failure: Message) -> None:
        self.done.add(rank)
        self.failures.append({**failure, "rank": rank, "host": self.hellos[rank]["host"]})
        # A process that was asked to stop does so: the first one has to leave a checkpoint.
        if failure["order"] != STOPPED or rank == 0:
            self.decide = min(self.decide, time.monotonic() + GRACE / 2)

    def _look(self) -> None:
        """Sees which process says nothing, and whether it is time to end."""
        now = time.monotonic()
        for rank in self.watch.silent():
            self.watch.left(rank)
            self._fails(rank, to_plain(killed(SILENT)))
        if self.failures:
            first = min(self.failures, key=lambda each: each["order"])
            doubt = any(missed >= DOUBT for missed in self.watch.missed.values())
            # What is no cause by itself may come of a process that says nothing any more.
            if len(self.done) == self.count or (
                now > self.decide and not (first["order"] == REST and doubt)
            ):
                self._end(first)
        elif len(self.done) == self.count:
            self._end(None)
        elif len(self.hellos) < self.count and now > self.limit:
            missing = [str(rank) for rank in range(self.count) if rank not in self.members]
            self._tell_all(late=missing)
            self.over = True

    def _end(self, failure: Message | None) -> None:
        self._tell_all(over=failure)
        self.over = True

    def _wait_for_all(self) -> None:
        """Returns once all that live have closed their ends: none may take its own for lost."""
        limit = time.monotonic() + FAREWELL
        while self.members.keys() & self.watch.missed and time.monotonic() < limit:
            ready, _, _ = select.select(list(self.members.values()), [], [], BEAT)
            for rank, wire in list(self.members.items()):
                if wire in ready:
                    list(wire.receive())
                if wire.closed:
                    self.members.pop(rank).close()

    def _rank(self, wire: Wire) -> int | None:
        return next((rank for rank, each in self.members.items() if each is wire), None)

    def _tell_all(self, **message: Any) -> None:
        for wire in self.members.values():
            wire.send(**message)
