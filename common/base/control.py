"""The control plane: processes of a run send each other JSON, heartbeats and how they ended.

A process listens to its children by pipes, and to other hosts by TCP, with the authentication of
`multiprocessing.connection`. Nothing that comes is unpickled. Once one has failed, all end.
"""

import json
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

from common.base.children import end, is_stopped, start
from common.base.endings import (
    REST,
    SAID,
    STOPPED,
    Ending,
    cause,
    ending_of,
    from_plain,
    killed,
    to_plain,
    without_word,
)
from common.base.signals import Stop

BEAT: Final = 1.0
"""Seconds between two heartbeats, and between two looks at whether a child is frozen."""

LIMIT: Final = 15
"""A process that has missed as many heartbeats counts as lost."""

DOUBT: Final = 3
"""After as many it is open whether a process lives."""

GRACE: Final = 3
"""Seconds that other processes have to end by themselves once one has failed."""

FROZEN: Final = f"has not answered for {LIMIT} seconds: it is frozen"
"""What is said of a process that has missed LIMIT heartbeats."""

SILENT: Final = f"{FROZEN}, or its host is gone"
"""What is said of one that may be on another host."""

GONE: Final = "is gone: it was killed, or its host is off"
"""What is said of such a process once its connection has ended."""

UPLINK: Final = -1
"""In the place of a rank: the process to which this one tells of its group."""

LONGEST: Final = 1 << 20
"""Bytes of a message: more than any of ours has, and no burden if they come from a stranger."""

Message = dict[str, Any]


class Channel:
    """One end of a connection that carries messages; any thread may send."""

    def __init__(self, connection: Connection) -> None:
        """Takes over a connection."""
        self.connection, self.lock = connection, threading.Lock()

    def send(self, **message: Any) -> None:
        """Sends a message; nothing happens if the other end is gone, as `receive` tells."""
        with self.lock, suppress(OSError):
            self.connection.send_bytes(json.dumps(message).encode())

    def receive(self) -> Message | None:
        """Waits for the next message; None if the other end is gone, or sends something else."""
        try:
            found = json.loads(self.connection.recv_bytes(LONGEST))
        except (OSError, EOFError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


class Member:
    """A process at work that another one listens to."""

    def __init__(self, channel: Channel) -> None:
        """Begins to listen to the other process."""
        self.channel = channel
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def run(self, work: Callable[[], object]) -> None:
        """Does the work, then says how it ended."""
        self.channel.send(ended=to_plain(ending_of(work)))

    def gather(self, value: Any) -> list[Any]:
        """What each process has given, by rank."""
        self.channel.send(give=value)
        found: list[Any] = self.inbox.get()
        return found

    def _listen(self) -> None:
        while (message := self.channel.receive()) is not None:
            if "got" in message:
                self.inbox.put(message["got"])
            elif "stop" in message:  # again and again: the run notes it only once it has begun
                os.kill(os.getpid(), signal.SIGUSR1)


class Child(NamedTuple):
    """A process that this one has started, and listens to; what it is called in messages."""

    name: str
    process: BaseProcess
    channel: Channel


def start_member(name: str, work: Callable[[Member], object]) -> Child:
    """Starts some work that is listened to; this process has to have one thread alone."""
    ours, theirs = Pipe()
    process = start(_be_member, theirs, work)
    theirs.close()  # or its end would not be seen, and the next process would keep it open
    return Child(name, process, Channel(ours))


def _be_member(connection: Connection, work: Callable[[Member], object]) -> None:
    ignore_until_noted()
    member = Member(Channel(connection))
    member.run(lambda: work(member))
    while is_stopped(os.getppid()):  # no other process may end it
        time.sleep(BEAT / 4)


def ignore_until_noted() -> None:
    """Signals that ask to stop do nothing until the run notes them: they are repeated."""
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)


class Group:
    """Processes by rank, of which some may be children of this one: listens until all have ended.

    `stop` is whether a signal has asked this process, and so all of them, to stop.
    """

    def __init__(self, children: Mapping[int, Child], stop: Stop) -> None:
        """Begins to listen; from now on this process has threads, and forks no more."""
        self.count, self.children, self.stop = len(children), children, stop
        self.mail: SimpleQueue[tuple[int, Message | None]] = SimpleQueue()
        self.names = {rank: child.name for rank, child in children.items()}
        self.channels = {rank: child.channel for rank, child in children.items()}
        self.endings: dict[int, Ending | None] = {}
        self.missed = dict.fromkeys(children, 0)
        self.counted, self.limit = time.monotonic(), math.inf
        self.stops = self.stopping = False
        for rank, channel in self.channels.items():
            self.listen_to(rank, channel)

    def listen_to(self, rank: int, channel: Channel) -> None:
        """Collects what comes, by a thread."""

        def listen() -> None:
            while (message := channel.receive()) is not None:
                self.mail.put((rank, message))
            self.mail.put((rank, None))

        threading.Thread(target=listen, daemon=True).start()

    def run(self) -> Ending | None:
        """Why they have failed, once all children are gone; None if all went well."""
        try:
            while not self.settled():
                self.listen()
        finally:
            end(child.process for child in self.children.values())
        return self.failure()[1]

    def listen(self) -> None:
        """Waits a moment for a message, counts missed heartbeats, and sees whether all stop.

        The time in which this process is frozen itself, as by Ctrl-Z, does not count.
        """
        with suppress(Empty):
            self.hear(*self.mail.get(timeout=BEAT / 4))
        now = time.monotonic()
        if now - self.counted >= BEAT:
            # Else what is called a little late each time would count too little in the end.
            self.counted = now if now - self.counted >= 2 * BEAT else self.counted + BEAT
            for rank in self.missed:
                self.missed[rank] = 0 if self._is_there(rank) else self.missed[rank] + 1
            for rank in [rank for rank, times in self.missed.items() if times >= LIMIT]:
                silent = FROZEN if rank in self.children else SILENT
                self.end(rank, killed(f"{self.names.get(rank, '')} {silent}".strip()))
            self.beat()
        if self.stop.asked and not self.stops:
            self.stops = True
            self.ask_to_stop()
        if self.stopping:  # each time: a run notes it only once it has begun
            self.tell(stop=True)

    def _is_there(self, rank: int) -> bool:
        """Whether it is a child that is not frozen: it may be too busy to send heartbeats."""
        child = self.children.get(rank)
        return child is not None and not is_stopped(child.process.pid or 0)

    def hear(self, rank: int, message: Message | None) -> None:
        """A process has sent a message; None: it will send no more."""
        if rank in self.endings:
            return
        if message is None:
            self.end(rank, self.lost(rank))
        elif "ended" in message:
            self.end(rank, from_plain(message["ended"]))
        elif "alive" in message:  # those that send no heartbeats are not watched
            self.missed[rank] = DOUBT if message.get("quiet") else 0

    def end(self, rank: int, ending: Ending | None) -> None:
        """A process has ended so."""
        self.endings[rank] = ending
        self.missed.pop(rank, None)
        # A process that was asked to stop does so: the first one has to leave a checkpoint.
        if ending and (ending.order != STOPPED or rank == 0):
            grace = 0 if ending.order == SAID else GRACE
            self.limit = min(self.limit, time.monotonic() + grace)

    def failure(self) -> tuple[int, Ending | None]:
        """The rank and the ending that are the cause of the others; no ending if there is none."""
        found = [(rank, ending) for rank, ending in self.endings.items() if ending]
        return min(found, key=lambda each: each[1].order, default=(0, None))

    def settled(self) -> bool:
        """Whether it is certain how all have ended."""
        if len(self.endings) == self.count:
            return True
        # What is no cause by itself may come of a process that is frozen.
        _, ending = self.failure()
        doubt = self.in_doubt() and ending is not None and ending.order == REST
        return time.monotonic() > self.limit and not doubt

    def in_doubt(self) -> bool:
        """Whether a process may be frozen."""
        return any(missed >= DOUBT for missed in self.missed.values())

    def lost(self, rank: int) -> Ending:
        """The ending of a process that has said nothing of it."""
        if child := self.children.get(rank):
            child.process.join(GRACE)  # it may not come to its end by itself
            ending = without_word(child.name, child.process)
            return ending._replace(error=cause(ending, self.stop))
        frozen = self.missed.get(rank, 0) > 3 * DOUBT  # and so its own host has ended it
        return killed(f"{self.names.get(rank, '')} {SILENT if frozen else GONE}".strip())

    def tell(self, **message: Any) -> None:
        """Sends a message to all of them."""
        for channel in self.channels.values():
            channel.send(**message)

    def ask_to_stop(self) -> None:
        """Asks all processes of the run to stop in order, after the same step: again and again."""
        self.stopping = True

    def beat(self) -> None:
        """Called once a BEAT."""


class Supervisor(Group):
    """A group of children of which another process, `above`, hears by the channel `uplink`.

    That one asks them to stop, hands on what they gather, and says when and how all have ended.
    """

    def __init__(
        self, children: Mapping[int, Child], stop: Stop, uplink: Channel, above: str = ""
    ) -> None:
        """Begins to listen."""
        super().__init__(children, stop)
        self.uplink, self.names[UPLINK] = uplink, above
        self.listen_to(UPLINK, uplink)

    def run(self) -> Ending | None:
        """Why the run has failed, once the process above has said so; None if it went well."""
        self.uplink.send(ended=to_plain(super().run()))
        while UPLINK not in self.endings:
            self.listen()
        return self.endings[UPLINK]

    def settled(self) -> bool:
        """Whether the children have ended, or have to."""
        return UPLINK in self.endings or super().settled()

    def hear(self, rank: int, message: Message | None) -> None:
        """Hands on what is gathered, either way."""
        super().hear(rank, message)
        if message and rank == UPLINK:
            self.names[UPLINK] = message.get("name", self.names[UPLINK])
            self.stopping = self.stopping or "stop" in message
            if "got" in message:
                self.tell(**message)
        elif message and "give" in message:
            self.uplink.send(**message)

    def ask_to_stop(self) -> None:
        """Asks the process above to ask all."""
        self.uplink.send(stop=True)

    def beat(self) -> None:
        """Tells that this process lives, and whether a child may be frozen."""
        self.uplink.send(alive=True, quiet=self.in_doubt())
