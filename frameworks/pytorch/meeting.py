"""Processes that a launcher has started: they find each other, and one that freezes is named.

A launcher sees no more than that a process ends, and the others would wait long for a frozen one.
Where process 0 keeps the store, and not torchrun, nobody can tell that this one is frozen.
"""

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from torch import distributed as dist

from common.backends.devices import Process
from common.base.errors import RunError
from common.base.pulse import BEAT, FROZEN, Watch

COMING: Final = 25
"""Seconds that processes which a launcher starts wait for the last of them."""

LOOK: Final = 0.2
"""Seconds between two looks at whether somebody has come."""

ANSWER: Final = 5
"""Seconds in which whoever listens answers."""


def meet(process: Process) -> dist.Store:
    """Where all processes meet that a launcher has started. Raises RunError if one is missing."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    # torchrun keeps the store itself, as it starts all processes anew if one of them fails.
    kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    hosts = process.rank == 0 and not kept
    if not hosts and not came(partial(reaches, address, port)):
        raise missing("torchrun" if kept else f"process 0 of {process.count}")
    store = dist.TCPStore(address, port, is_master=hosts, wait_for_workers=False)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    here = dist.PrefixStore(f"attempt {attempt}", store)
    here.set(f"{process.rank}", f"{os.getpid()}")
    for rank in range(process.count):
        if not came(partial(here.check, [f"{rank}"])):
            raise missing(f"process {rank} of {process.count}")
    return here


def came(there: Callable[[], bool]) -> bool:
    """Whether something comes true within COMING seconds."""
    limit = time.monotonic() + COMING
    while not (found := there()) and time.monotonic() < limit:
        time.sleep(LOOK)
    return found


def reaches(address: str, port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection((address, port), timeout=ANSWER).close()
    except OSError:
        return False
    return True


def missing(who: str) -> RunError:
    """What to raise if somebody does not come."""
    return RunError(f"{who} has not come within {COMING} seconds: start all processes")


@contextmanager
def watched(process: Process, store: dist.Store) -> Iterator[None]:
    """Meanwhile the processes of a host watch each other, and end one that is frozen.

    Whoever waits for it in Gloo then has an error of the connection, or a signal of the launcher.
    Raises RunError in their place.
    """
    peers = Peers(process, store)
    try:
        yield
    except BaseException as error:
        # The launcher ends all processes as soon as one has ended: they have to say why.
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if not (rank := peers.frozen()):
            signal.signal(signal.SIGTERM, before)
            raise
        raise RunError(f"process {rank} of {process.count} {FROZEN}") from error
    finally:
        peers.end()


class Peers:
    """Says in the store once a second that this process is alive, and reads who else is."""

    def __init__(self, process: Process, store: dist.Store) -> None:
        """Starts a thread with a connection of its own, as the other one may be waiting."""
        # Where there are no handles, nobody watches: their patience ends the others.
        first = process.rank - process.local_rank
        near = range(first, first + process.local_count) if hasattr(os, "pidfd_open") else range(0)
        self.rank, self.store = process.rank, store.clone()  # type: ignore[attr-defined]
        self.handles = dict(self._handles(rank for rank in near if rank != process.rank))
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._beat, daemon=True)
        self.thread.start()

    def frozen(self) -> str:
        """The rank of the process that was frozen; empty if none was, or nobody can tell."""
        if self._falls_silent():
            with suppress(RuntimeError):  # whoever keeps the store may be gone
                return self.store.get("frozen").decode() if self.store.check(["frozen"]) else ""
        return ""

    def end(self) -> None:
        """Says that this process does not speak any more."""
        if self._falls_silent():
            for handle in self.handles.values():
                os.close(handle)
            with suppress(RuntimeError):
                self.store.set(f"{self.rank} is done", "")

    def _falls_silent(self) -> bool:
        """Ends the thread; whether it did: it does not while a frozen process keeps the store."""
        if not self.over.is_set():
            self.over.set()
            self.thread.join(ANSWER)
        return not self.thread.is_alive()

    def _handles(self, ranks: Iterable[int]) -> Iterator[tuple[int, int]]:
        """For each process a name that no later one can have, as a number can."""
        for rank in ranks:
            with suppress(OSError):  # it is gone, which all will see, or the system has none
                yield rank, os.pidfd_open(int(self.store.get(f"{rank}")))

    def _beat(self) -> None:
        watch, beats = Watch(self.handles), dict.fromkeys(self.handles, 0)
        with suppress(RuntimeError, OSError):  # nobody keeps the store any more
            while not self.over.wait(BEAT):
                self.store.add(f"pulse {self.rank}", 1)
                for rank, before in list(beats.items()):
                    if self.store.check([f"{rank} is done"]) or ended(self.handles[rank]):
                        watch.left(rank)
                        del beats[rank]
                    elif (beat := self.store.add(f"pulse {rank}", 0)) != before:
                        watch.heard(rank)
                        beats[rank] = beat
                for rank in watch.silent():
                    self.store.set("frozen", f"{rank}")
                    signal.pidfd_send_signal(self.handles[rank], signal.SIGKILL)
                    watch.left(rank)
                    del beats[rank]


def ended(handle: int) -> bool:
    """Whether the process with this handle has ended: the handle can be read then."""
    return bool(select.select([handle], [], [], 0)[0])
