"""Starts and supervises the scheduler and the servers of MXNet's dist kvstore."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from common.backends.devices import Process
from common.base.children import end_frozen
from common.base.errors import RunError
from common.base.signals import held_back

COMING: Final = 25
"""Seconds in which the scheduler comes, and is reached from other hosts."""

MEETING: Final = 120
"""Seconds in which workers and servers connect; a machine at its limit takes some of them."""

LOOK: Final = 0.05
"""Seconds between two looks at whether it is there."""

ROOT: Final = Path(__file__).parents[2]

ZEROED: Final = "glibc.malloc.perturb=255:glibc.malloc.tcache_count=0"
"""Has all new memory of a process zeroed.

A server reads a flag that MXNet never sets; where that is not 0, sums of doubles are wrong.
"""


@contextmanager
def served(process: Process) -> Iterator[None]:
    """Meanwhile the first process has a scheduler, and each one a server; all call it.

    With as many servers as workers no host has to receive what all others send. Raises RunError if
    the scheduler does not come or cannot be reached.
    """
    with ExitStack() as children:
        if process.rank == 0:
            scheduler, port = started_scheduler(process)
            children.enter_context(minded(scheduler))
            process.gather(port)
        else:
            port = process.gather(0)[0]
        where = environment(process, port)
        if not reached(where["DMLC_PS_ROOT_URI"], port):
            raise RunError(f"MXNet's scheduler at {where['DMLC_PS_ROOT_URI']} cannot be reached")
        children.enter_context(minded(Child("server", where)))
        os.environ |= {**where, "DMLC_ROLE": "worker"}
        yield


class Child:
    """A process in a role, which ends with this one, and ignores signals that are for all."""

    def __init__(self, role: str, where: Mapping[str, str]) -> None:
        """Starts it."""
        self.role = role
        path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
        tunables = ":".join([*filter(None, [os.environ.get("GLIBC_TUNABLES")]), ZEROED])
        with held_back():  # until it ignores them
            self.process = subprocess.Popen(
                [sys.executable, "-m", "frameworks.mxnet.server", role, str(os.getpid())],
                env={**os.environ, **where, "PYTHONPATH": path, "GLIBC_TUNABLES": tunables},
            )
        end_frozen(self.process.pid, self.runs)

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def end(self) -> None:
        """Ends it; returns once it is gone."""
        self.process.kill()
        self.process.wait()


def environment(process: Process, port: int) -> dict[str, str]:
    """The variables that give a worker or server the scheduler's address and its own."""
    return {
        "DMLC_PS_ROOT_URI": process.address(0),
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NODE_HOST": process.address(process.rank),
        "DMLC_NUM_WORKER": str(process.count),
        "DMLC_NUM_SERVER": str(process.count),
    }


def started_scheduler(process: Process) -> tuple[Child, int]:
    """A scheduler that listens, and its port. Raises RunError if none comes."""
    address = process.address(0)
    limit = time.monotonic() + COMING
    while time.monotonic() < limit:
        with socket.create_server((address, 0)) as free:
            port = free.getsockname()[1]
        # It cannot be given port 0, so another program may have come before it.
        child = Child("scheduler", environment(process, port))
        if reached(address, port, child):
            return child, port
        child.end()
    raise RunError("MXNet's scheduler did not start")


def reached(address: str, port: int, child: Child | None = None) -> bool:
    """Whether a process listens there within COMING seconds, or until `child` ends."""
    limit = time.monotonic() + COMING
    while time.monotonic() < limit and (child is None or child.runs()):
        try:
            socket.create_connection((address, port), timeout=COMING).close()
        except OSError:
            time.sleep(LOOK)
        else:
            return True
    return False


@contextmanager
def minded(child: Child) -> Iterator[None]:
    """Meanwhile this process ends if the child does; in the end, it ends the child.

    All workers would wait for it forever, where no exception reaches them.
    """
    over = threading.Event()

    def mind() -> None:
        status = child.process.wait()
        # It exits with 0 after all workers have said that they are done.
        if status and not over.is_set():
            give_up(f"MXNet's {child.role} ended with status {status}")

    threading.Thread(target=mind, daemon=True).start()
    try:
        yield
    finally:
        over.set()
        child.end()


@contextmanager
def in_time() -> Iterator[None]:
    """Meanwhile this process waits for all others, and ends if that takes longer than MEETING."""
    message = f"MXNet's workers and servers do not reach each other within {MEETING} seconds"
    timer = threading.Timer(MEETING, give_up, [message])
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()


def give_up(message: str) -> None:
    """Ends this process from any thread; its supervisor tells the others."""
    print(message, file=sys.stderr, flush=True)
    os._exit(1)
