"""The control plane: processes of a run send each other JSON, heartbeats and why they failed.

A process listens to its children by pipes, and to other hosts by TCP. Nothing that comes is
unpickled. Once one has failed, all end.
"""

import json
import math
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

from common.base.children import end, is_stopped, start
from common.base.errors import BusyError, RequestError, RunError, StoppedError, UnforeseenError
from common.base.signals import Stop

BEAT: Final = 1.0
"""Seconds between two heartbeats, and between two looks at whether a child is frozen."""

LIMIT: Final = 15
"""A process that has missed as many heartbeats counts as lost."""

GRACE: Final = 3
"""Seconds that other processes have to end by themselves once one has failed."""

FROZEN: Final = f"has not answered for {LIMIT} seconds: it is frozen"
FROZEN_OR_GONE: Final = f"{FROZEN}, or its host is gone"

UPLINK: Final = -1
"""In the place of a rank: the process to which this one tells of its group."""

CRASHES: Final = {signal.Signals[f"SIG{name}"] for name in ("ABRT", "BUS", "FPE", "ILL", "SEGV")}
"""The signals by which the system ends a process for what it has done itself."""

SAID, KILLED, STOPPED, REST = range(4)

Message = dict[str, Any]


class Failure(NamedTuple):
    """Why a process failed; of several failures, the first one of the lowest `order` is the cause.

    The order: what a worker said, then a process that was killed or is frozen, then one that has
    stopped when asked to, then the rest. The death of another process may have caused the rest.
    """

    order: int
    kind: str
    message: str
    about: dict[str, Any]
    details: str

    def error(self) -> RequestError | RunError:
        kinds = RequestError, BusyError, RunError, UnforeseenError, StoppedError
        (kind,) = (error for error in kinds if error.__name__ == self.kind)
        error = kind(self.message)
        vars(error).update(self.about)
        return error


def failure_of(work: Callable[[], object]) -> Failure | None:
    """Does some work; why it failed, or None."""
    try:
        work()
    except (RequestError, RunError) as error:
        order = STOPPED if isinstance(error, StoppedError) else SAID
        return failure_by(error, order, traceback.format_exc())
    except Exception as error:
        # Not the last line of the traceback: a framework may add notes to an exception.
        line = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
        unforeseen = UnforeseenError(f"a process failed: {line}")
        return failure_by(unforeseen, REST, traceback.format_exc())
    return None


def failure_by(error: RequestError | RunError, order: int = SAID, details: str = "") -> Failure:
    return Failure(order, type(error).__name__, str(error), vars(error), details)


def lost(message: str, *, crashed: bool = False) -> Failure:
    """The failure of a process that has not told why it failed."""
    return failure_by(UnforeseenError(message) if crashed else RunError(message), KILLED)


def raise_failure(failure: Failure | None, stop: Stop) -> None:
    """Raises the error of a failure; processes that were asked to stop do not know the signal."""
    if failure is None:
        return
    error = failure.error()
    if stop.asked and isinstance(error, StoppedError):
        error.status = stop.status
    raise error from RuntimeError(failure.details)


class Channel:
    """One end of a connection that carries messages; any thread may send."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.lock = connection, threading.Lock()

    def send(self, **message: Any) -> None:
        """Sends a message; nothing happens if the other end is gone, as `receive` tells."""
        with self.lock, suppress(OSError):
            self.connection.send_bytes(json.dumps(message).encode())

    def receive(self) -> Message | None:
        """Waits for the next message; None if the other end is gone, or sends something else."""
        try:
            # At most a megabyte: more than ours have, and no burden from a stranger.
            message = json.loads(self.connection.recv_bytes(1 << 20))
        except (OSError, EOFError, ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) else None


class Member(Channel):
    """In a process at work: its connection to the process that listens to it."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def gather(self, value: Any) -> list[Any]:
        """What each process has given, by rank."""
        self.send(give=value)
        return list(self.inbox.get())

    def _listen(self) -> None:
        while (message := self.receive()) is not None:
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
    here, there = Pipe()
    process = start(_be_member, there, work)
    there.close()  # or its end would not be seen, and the next process would keep it open
    return Child(name, process, Channel(here))


def _be_member(connection: Connection, work: Callable[[Member], object]) -> None:
    member = Member(connection)
    member.send(ended=failure_of(lambda: work(member)))
    while is_stopped(os.getppid()):  # no other process may end it
        time.sleep(BEAT / 4)


class Group:
    """Processes by rank, of which some may be children of this one: listens until all have ended.

    `stop` is whether a signal has asked this process, and so all of them, to stop. With an
    `uplink`, the process `above` hears of the group by it: it asks all to stop, hands on what they
    gather, and says when and how all have ended.
    """

    def __init__(
        self,
        children: Mapping[int, Child],
        stop: Stop,
        uplink: Channel | None = None,
        above: str = "",
    ) -> None:
        """Begins to listen; from now on this process has threads, and forks no more."""
        self.count, self.children, self.stop, self.uplink = len(children), children, stop, uplink
        self.mail: SimpleQueue[tuple[int, Message | None]] = SimpleQueue()
        self.names, self.channels = dict[int, str](), dict[int, Channel]()
        self.ends: dict[int, Failure | None] = {}
        self.missed = dict.fromkeys(children, 0)
        self.counted, self.limit = time.monotonic(), math.inf
        self.stopping = False
        for rank, child in children.items():
            self.channels[rank] = child.channel
            self.listen_to(rank, child.channel, child.name)
        if uplink:
            self.listen_to(UPLINK, uplink, above)

    def listen_to(self, rank: int, channel: Channel, name: str) -> None:
        self.names[rank] = name

        def listen() -> None:
            while (message := channel.receive()) is not None:
                self.mail.put((rank, message))
            self.mail.put((rank, None))

        threading.Thread(target=listen, daemon=True).start()

    def run(self) -> Failure | None:
        """Why the run has failed, once all children are gone; None if all went well."""
        try:
            while not self.settled():
                self.listen()
        finally:
            end(child.process for child in self.children.values())
        _, failure = self.cause()
        if self.uplink:
            self.uplink.send(ended=failure)
            while UPLINK not in self.ends:
                self.listen()
            return self.ends[UPLINK]
        return failure

    def listen(self) -> None:
        """Waits a moment for a message, counts missed heartbeats, and sees whether all stop."""
        with suppress(Empty):
            self.hear(*self.mail.get(timeout=BEAT / 10))
        # Counts calls: the time in which this process is frozen itself is one heartbeat.
        if time.monotonic() - self.counted >= BEAT:
            self.counted = time.monotonic()
            self.beat()
        if self.stop.asked and not self.stopping:  # the answer is a message, too
            self.ask_to_stop()
        if self.stopping:  # each time: a run notes it only once it has begun
            self.tell(stop=True)

    def hear(self, rank: int, message: Message | None) -> None:
        """A process has sent a message; None: it will send no more."""
        if rank in self.ends:
            return
        if message is None:
            self.end(rank, self.lost(rank))
        elif "ended" in message:
            self.end(rank, message["ended"] and Failure(*message["ended"]))
        elif "alive" in message:  # those that send no heartbeats are not watched
            self.missed[rank] = 0
        elif self.uplink and "give" in message:
            self.uplink.send(**message)
        elif rank == UPLINK and "stop" in message:
            self.stopping = True
        elif rank == UPLINK:
            self.tell(**message)

    def beat(self) -> None:
        """Called once a BEAT: counts missed heartbeats; a child only misses them if frozen."""
        for rank in [*self.missed]:
            child = self.children.get(rank)
            runs = child and not is_stopped(child.process.pid or 0)
            self.missed[rank] = 0 if runs else self.missed[rank] + 1
            if self.missed[rank] >= LIMIT:
                self.end(rank, lost(f"{self.names[rank]} {FROZEN if child else FROZEN_OR_GONE}"))
        if self.uplink:
            self.uplink.send(alive=True)

    def end(self, rank: int, failure: Failure | None) -> None:
        """A process has ended; None: it went well."""
        self.ends[rank] = failure
        self.missed.pop(rank, None)
        # A process that was asked to stop does so: the first one has to leave a checkpoint.
        if failure and (failure.order != STOPPED or rank == 0):
            # What is no cause by itself may come of a process that is frozen.
            grace = {SAID: 0, REST: LIMIT * BEAT}.get(failure.order, GRACE)
            self.limit = min(self.limit, time.monotonic() + grace)

    def cause(self) -> tuple[int, Failure | None]:
        """The rank and the failure that caused the others; no failure if there is none."""
        failed = [(rank, failure) for rank, failure in self.ends.items() if failure]
        return min(failed, key=lambda end: end[1].order, default=(0, None))

    def settled(self) -> bool:
        """Whether it is certain how all have ended, or the process above has said so."""
        certain = len(self.ends) == self.count or time.monotonic() > self.limit
        return certain or UPLINK in self.ends

    def lost(self, rank: int) -> Failure:
        if child := self.children.get(rank):
            child.process.join(GRACE)  # it may not come to its end by itself
            if (status := child.process.exitcode) is None:
                return lost(f"{child.name} says nothing more")
            how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
            return lost(f"{child.name} was ended {how}", crashed=-status in CRASHES)
        # After half of the heartbeats, its own host has ended it.
        frozen = self.missed.get(rank, 0) > LIMIT / 2
        gone = "is gone: it was killed, or its host is off"
        return lost(f"{self.names[rank]} {FROZEN_OR_GONE if frozen else gone}")

    def tell(self, **message: Any) -> None:
        for channel in self.channels.values():
            channel.send(**message)

    def ask_to_stop(self) -> None:
        """Asks all processes of the run to stop in order, after the same step."""
        if self.uplink:
            self.uplink.send(stop=True)
        else:
            self.stopping = True
