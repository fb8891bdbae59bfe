"""Every process that a launcher has started: it meets the others, and has a child do the work.

So it hears that another one is lost, whatever a framework waits for, and ends its child then.
"""

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection, Pipe
from typing import Any

from common.backends.devices import Process
from common.base.children import end, end_frozen, outlive_frozen, start
from common.base.endings import KILLED, Ending, cause, killed, tell_ending, to_plain, without_word
from common.base.errors import StoppedError
from common.base.pulse import ALIVE, BEAT, FROZEN, Watch
from common.base.signals import Stop, stoppable
from common.hosts.hub import DOUBT
from common.hosts.meeting import Meeting
from common.hosts.wire import GONE, SILENT, Message, Wire, failure_in, require_reach

Work = Callable[[Process], None]


def with_others(meeting: Meeting, work: Work) -> None:
    """Does the work as one of several processes.

    Raises RunError if one of them, which it names, has failed or is lost, and what `Meeting.meet`
    raises.
    """
    with stoppable() as stop, meeting.hub():
        process, wire = meeting.meet(stop)
        try:
            failure = Supervisor(process, wire, stop, work).supervise()
        finally:
            wire.close()
    if failure is not None:
        raise failure.error from RuntimeError(failure.details)


class Supervisor:
    """A process that starts a child for the work, and listens to it and to the hub."""

    def __init__(self, process: Process, wire: Wire, stop: Stop, work: Work) -> None:
        """Starts the child."""
        self.process, self.wire, self.stop = process, wire, stop
        self.outcome, tell = Pipe(duplex=False)
        self.asked, ask = Pipe()
        ours = (self.outcome, self.asked, wire.connection)
        self.child = start(_work, process, work, ask, tell, ours)
        tell.close()
        ask.close()
        self.watch = Watch(["hub", "child"])
        self.ending: Ending | None = None
        self.spoken, self.stops = 0.0, False
        self.over: Message | None = None

    def supervise(self) -> Ending | None:
        """Why the run has failed, once all know of it; None if it went well, everywhere."""
        try:
            while self.over is None:
                self._listen()
                self._speak()
                self._look()
        finally:
            end([self.child])
        told = self.over["over"]
        if not told:
            return None
        failure = failure_in(told)
        if told["rank"] == self.process.rank and self.ending:
            failure = failure if told["order"] == KILLED else self.ending
            failure = failure._replace(error=cause(failure, self.stop))
        elif isinstance(failure.error, StoppedError):
            failure = failure._replace(error=cause(failure, self.stop))
        return failure

    def _listen(self) -> None:
        sources: list[Any] = [
            self.wire,
            *(each for each in (self.outcome, self.asked) if not each.closed),
        ]
        ready = [self.wire] if self.wire.inbox else select.select(sources, [], [], BEAT)[0]
        if self.wire in ready:
            self.watch.heard("hub")
            for message in self.wire.receive():
                self._hear(message)
        if self.asked in ready:
            with suppress(EOFError, OSError):  # it was killed, as `outcome` will tell
                self.wire.send(give=self.asked.recv())
        if self.outcome in ready:
            self._hear_child()

    def _hear(self, message: Message) -> None:
        if "got" in message:
            with suppress(OSError):  # it has ended, and will say so
                self.asked.send(message["got"])
        elif "stop" in message:
            self.stops = True
        elif "over" in message:
            self.over = message

    def _hear_child(self) -> None:
        try:
            word = self.outcome.recv()
        except EOFError:
            word = without_word("", self.child)
        if word == ALIVE:
            self.watch.heard("child")
        else:
            self._ends(word)

    def _ends(self, ending: Ending | None) -> None:
        """The child has ended so: the hub tells what comes of it."""
        self.watch.left("child")
        self.outcome.close()
        self.asked.close()
        self.ending = ending
        if ending:
            self.wire.send(failure=to_plain(ending))
        else:
            self.wire.send(done=True)

    def _speak(self) -> None:
        if time.monotonic() - self.spoken < BEAT:
            return
        self.spoken = time.monotonic()
        self.wire.send(alive=True, quiet=self.watch.missed.get("child", 0) >= DOUBT)
        if self.stop.asked and not self.stops:
            self.wire.send(stop=True)
            self.stops = True
        if self.stops and self.child.pid and self.child.is_alive():
            os.kill(self.child.pid, signal.SIGUSR1)

    def _look(self) -> None:
        """Sees whether hub or child are gone, or frozen."""
        silent = self.watch.silent()
        if self.wire.closed and self.over is None:
            self._lose(GONE)
        elif "hub" in silent:
            self._lose(SILENT)
        if "child" in silent:
            self._ends(killed(FROZEN))

    def _lose(self, message: str) -> None:
        """There is no hub any more, which lives with the first process."""
        told = to_plain(killed(message))
        self.over = {"over": {**told, "rank": 0, "host": self.process.hosts[0]}}


def _work(
    process: Process,
    work: Work,
    ask: Connection,
    tell: Connection,
    others: tuple[Any, ...],
) -> None:
    """What the child does."""
    # Held open here, they would outlive the parent, and the others would not see that it is gone.
    for each in others:
        each.close()
    parent = os.getppid()
    if process.rank:  # the hub minds the first one, and would end with it too soon
        end_frozen(parent)
    # The run minds them once it has begun; until then, the parent repeats that all stop.
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)
    ours = replace(process, gather=partial(_gather, ask))
    tell_ending(partial(_reach_and_work, ours, work), tell)
    if process.rank:
        outlive_frozen(parent)  # no other process would end it


def _reach_and_work(process: Process, work: Work) -> None:
    require_reach(process)
    work(process)


def _gather(ask: Connection, value: Any) -> list[Any]:
    """What each process has given, by rank."""
    ask.send(value)
    found: list[Any] = ask.recv()
    return found
