"""How the processes that a launcher has started find each other, through the hub of the first."""

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from typing import Final

from common.backends.devices import Process
from common.base.children import end, end_if_frozen, start
from common.base.endings import SAID, Ending, to_plain
from common.base.errors import RequestError, RunError, StoppedError
from common.base.network import connected, loopback
from common.base.pulse import BEAT, Watch
from common.base.signals import ENDING, Stop
from common.hosts.hub import Hub
from common.hosts.launchers import BY_HAND, Launched
from common.hosts.wire import GONE, SILENT, Message, Wire, failure_in, listener, name_of

LOOK: Final = 0.2
"""Seconds between two tries to reach the first process."""

ENOUGH: Final = 2
"""Seconds after which the first process says which others are missing."""

HUB_TIMEOUT: Final = 8
"""Seconds in which the hub ends after the first process; one that is frozen is killed then.

Until then, the others have found it frozen: one that is killed at once they would take for lost.
"""


@dataclass(frozen=True)
class Meeting:
    """One of the processes of a run comes to where they meet: all in `limit` seconds.

    `asked` is what all have to be asked alike; `notice` tells which are missing.
    """

    here: Launched
    asked: Message
    notice: Callable[[str], None]
    limit: float

    @contextmanager
    def hub(self) -> Iterator[None]:
        """Meanwhile the hub is there; the first process has it, and the others have not.

        Raises RequestError if it has no port.
        """
        hub = self._hub() if self.here.process.rank == 0 else None
        try:
            yield
        finally:
            if hub is not None:
                hub.join(HUB_TIMEOUT)
                end([hub])

    def meet(self, stop: Stop) -> tuple[Process, Wire]:
        """The process among all others, once they have come, and its connection to the hub.

        Raises RunError if some do not come, RequestError if they were not started alike, and
        StoppedError.
        """
        wire = self._reach(stop)
        try:
            return self._placed(wire, stop), wire
        except BaseException as error:
            if isinstance(error, StoppedError):  # the others need not wait any longer
                wire.send(failure=to_plain(Ending(SAID, error, "")))
            wire.close()
            raise

    def hello(self) -> Message:
        """What a process says of itself when it comes."""
        return {"rank": self.here.process.rank, "host": socket.gethostname(), "asked": self.asked}

    def where(self) -> tuple[str, int]:
        """Host and port of the hub, for this process."""
        assert self.here.coordinator is not None  # it has one wherever there are several
        host, port = self.here.coordinator
        # "localhost" may be ::1, and all others would be told that this process has IPv6.
        return (loopback() if self.here.process.rank == 0 else host), port

    def _hub(self) -> BaseProcess:
        _, port = self.where()
        try:
            taking = listener(port)
        except OSError as error:
            raise RequestError(
                f"processes cannot connect at port {port} of this host ({error.strerror}): "
                "name another one in --coordinator"
            ) from None
        with taking:
            hub = Hub(taking, self.here.process.count, self.hello(), self.limit)
            return start(_serve, hub)

    def _reach(self, stop: Stop) -> Wire:
        host, port = self.where()
        began = time.monotonic()
        while not stop.asked:
            try:
                return Wire(connected(host, port, ENOUGH))
            except OSError as error:
                if time.monotonic() - began > self.limit:
                    who = name_of(self.here.process.rank, socket.gethostname())
                    raise RunError(
                        f"{who} cannot reach the first process at {host}:{port} "
                        f"({error.strerror or error}) within {self.limit:g} seconds: start it"
                        f"{_asked_by(self.here)}"
                    ) from None
            time.sleep(LOOK)
        raise _stopped(stop)

    def _placed(self, wire: Wire, stop: Stop) -> Process:
        process, shown, told = self.here.process, "", time.monotonic()
        watch = Watch(["hub"])
        wire.send(**self.hello())
        while not stop.asked:
            ready, _, _ = select.select([wire], [], [], BEAT)
            wire.send(alive=True)
            if ready:
                watch.heard("hub")
            for message in wire.receive() if ready else ():
                if "everyone" in message:
                    return _among(process, message["everyone"])
                if "missing" in message and process.rank == 0:
                    shown = _missing(self.here, message["missing"])
                _require_welcome(self.here, message)
            if wire.closed or watch.silent():
                host = self.here.coordinator[0] if self.here.coordinator else ""
                raise RunError(f"{name_of(0, host)} {GONE if wire.closed else SILENT}")
            if shown and time.monotonic() - told > ENOUGH:
                self.notice(shown)
                shown = ""
        raise _stopped(stop)


def _serve(hub: Hub) -> None:
    # A launcher may signal all processes that there are: this one ends after the others.
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    parent = os.getppid()
    hub.run()
    end_if_frozen(parent)  # all others know of it, and no other process would end it


def _stopped(stop: Stop) -> StoppedError:
    return StoppedError("stopped before all had started", status=stop.status)


def _among(process: Process, everyone: list[Message]) -> Process:
    hosts, addresses = (tuple(each[name] for each in everyone) for name in ("host", "address"))
    # No launcher has to tell which processes share a host.
    here = hosts[process.rank]
    local_rank, local_count = hosts[: process.rank].count(here), hosts.count(here)
    for host in hosts:
        if hosts.count(host) != local_count:
            raise RequestError(
                f"{hosts.count(host)} processes are on {host}, and {local_count} on {here}: "
                "start the same number on each host"
            )
    return replace(
        process,
        local_rank=local_rank,
        local_count=local_count,
        hosts=hosts,
        addresses=addresses,
    )


def _require_welcome(here: Launched, message: Message) -> None:
    """Raises RequestError or RunError if the message says that all is over."""
    if "refused" in message:
        raise RequestError(message["refused"])
    if "late" in message:
        ranks = ", ".join(map(str, message["late"]))
        late = f"process {ranks} of {here.process.count} did not start in time: start all"
        raise RunError(f"{late}{_asked_by(here)}")
    if message.get("over"):
        raise failure_in(message["over"]).error


def _missing(here: Launched, missing: list[int]) -> str:
    """Which processes are missing, and what asks for them."""
    count, ranks = here.process.count, ", ".join(map(str, missing))
    told = f"{count - len(missing)} of {count} processes have come; waiting for {ranks}"
    return f"{told}{_asked_by(here)}"


def _asked_by(here: Launched) -> str:
    """What asks for other processes, if flags do not: variables may be left over from a job."""
    if here.launcher == BY_HAND:
        return ""
    return f", as the environment says ({here.launcher}); --launcher none ignores it"
