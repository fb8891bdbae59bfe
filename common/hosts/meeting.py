"""How the processes that a launcher has started find each other, through the hub of the first."""

import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from typing import Final

from common.backends.devices import Process
from common.base.children import end, fork
from common.base.endings import KILLED, Ending, from_plain
from common.base.errors import RequestError, RunError, StoppedError
from common.base.pulse import BEAT, FROZEN, Watch
from common.base.signals import Stop
from common.hosts.hub import GONE, Hub
from common.hosts.launchers import Place
from common.hosts.wire import Message, Wire, listener

LOOK: Final = 0.2
"""Seconds between two tries to reach the first process."""

ENOUGH: Final = 2
"""Seconds after which one wants to know who is missing."""

PATIENCE: Final = 20
"""Seconds in which all others end, once one has ended in order."""


@dataclass(frozen=True)
class Meeting:
    """One of the processes of a run comes to where they meet: all in `limit` seconds.

    `asked` is what all have to be asked alike; `notice` tells who is missing.
    """

    place: Place
    asked: Message
    notice: Callable[[str], None]
    limit: float

    @contextmanager
    def hub(self) -> Iterator[None]:
        """Meanwhile the hub is there; the first process has it, and the others have not.

        Raises RequestError if it has no port.
        """
        hub = self._hub() if self.place.process.rank == 0 else None
        try:
            yield
        finally:
            if hub is not None:
                hub.join(PATIENCE)
                end([hub])

    def meet(self, stop: Stop) -> tuple[Process, Wire]:
        """The process among all others, once they have come, and its connection to the hub.

        Raises RunError if some do not come, RequestError if they were not started alike, and
        StoppedError.
        """
        wire = self._reach(stop)
        try:
            return self._placed(wire, stop), wire
        except BaseException:
            wire.close()
            raise

    def hello(self) -> Message:
        """What a process says of itself when it comes."""
        return {"rank": self.place.process.rank, "host": socket.gethostname(), "asked": self.asked}

    def where(self) -> tuple[str, int]:
        """Host and port of the hub, for this process. Raises RequestError if nobody has said so."""
        if self.place.coordinator is None:
            raise RequestError(f"{self.place.launcher} does not tell where: name --coordinator")
        host, port = self.place.coordinator
        return ("localhost" if self.place.process.rank == 0 else host), port

    def _hub(self) -> BaseProcess:
        _, port = self.where()
        try:
            taking = listener(port)
        except OSError as error:
            raise RequestError(
                f"processes cannot meet at port {port} of this host ({error.strerror}): "
                "name another one in --coordinator"
            ) from None
        with taking:
            hub = Hub(taking, self.place.process.count, self.hello(), self.limit)
            return fork(hub.run)

    def _reach(self, stop: Stop) -> Wire:
        host, port = self.where()
        began = time.monotonic()
        while not stop.asked:
            try:
                return Wire(socket.create_connection((host, port), timeout=ENOUGH))
            except OSError as error:
                if time.monotonic() - began > self.limit:
                    who = name_of(self.place.process.rank, socket.gethostname())
                    raise RunError(
                        f"{who} cannot reach the first one at {host}:{port} "
                        f"({error.strerror or error}) within {self.limit:g} seconds: start it"
                    ) from None
            time.sleep(LOOK)
        raise _stopped(stop)

    def _placed(self, wire: Wire, stop: Stop) -> Process:
        process, shown, told = self.place.process, "", time.monotonic()
        wire.send(**self.hello())
        watch = Watch(["hub"])
        while not stop.asked:
            ready, _, _ = select.select([wire], [], [], BEAT)
            wire.send(alive=True)
            if ready:
                watch.heard("hub")
            for message in wire.receive() if ready else ():
                if "everyone" in message:
                    return _among(process, message["everyone"])
                if "missing" in message and process.rank == 0:
                    shown = _missing(process.count, message["missing"])
                _require_welcome(process, message)
            if wire.closed or watch.silent():
                gone = f"{FROZEN}, or its host is gone" if watch.silent() else GONE
                raise RunError(f"{name_of(0, self.where()[0])} {gone}")
            if shown and time.monotonic() - told > ENOUGH:
                self.notice(shown)
                shown = ""
        raise _stopped(stop)


def _stopped(stop: Stop) -> StoppedError:
    return StoppedError("stopped before all had come", status=stop.status)


def _among(process: Process, everyone: list[Message]) -> Process:
    hosts, addresses = (tuple(each[name] for each in everyone) for name in ("host", "address"))
    return replace(process, hosts=hosts, addresses=addresses)


def _require_welcome(process: Process, message: Message) -> None:
    """Raises RequestError or RunError if the message says that all is over."""
    if "refused" in message:
        raise RequestError(message["refused"])
    if "late" in message:
        ranks = ", ".join(map(str, message["late"]))
        raise RunError(f"process {ranks} of {process.count} has not come in time: start all")
    if message.get("over"):
        raise failure_in(message["over"]).error


def _missing(count: int, missing: list[int]) -> str:
    ranks = ", ".join(map(str, missing))
    return f"{count - len(missing)} of {count} processes have come; waiting for {ranks}"


def name_of(rank: int, host: str) -> str:
    """What a process is called."""
    return f"process {rank} on {host}"


def failure_in(told: Message) -> Ending:
    """Why all have to end."""
    joint = " " if told["order"] == KILLED else ": "
    return from_plain(told, f"{name_of(told['rank'], told['host'])}{joint}")
