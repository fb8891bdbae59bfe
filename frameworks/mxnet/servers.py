"""What MXNet's dist kvstore needs besides workers: a scheduler, and servers, which add.

Each is a process of its own: python -m frameworks.mxnet.servers ROLE PARENT
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from common.backends.devices import Process
from common.base.children import end_with
from common.base.errors import RequestError, RunError
from common.base.signals import ENDING, held_back, let_through

LOOPBACK: Final = "127.0.0.1"

COMING: Final = 25
"""Seconds in which the scheduler comes, and is reached from other hosts."""

LOOK: Final = 0.05
"""Seconds between two looks at whether it is there."""

ROOT: Final = Path(__file__).parents[2]

Child = subprocess.Popen[bytes]


def serve(role: str) -> int:
    """Is the "scheduler" or a "server" until all workers are through; returns an exit status.

    To import MXNet in such a role does the same, but takes seconds, and that server unpickles what
    anyone sends to its port.
    """
    found = find_spec("mxnet")
    if found is None or not found.submodule_search_locations:
        return 1
    os.environ["DMLC_ROLE"] = role
    library = ctypes.CDLL(str(Path(found.submodule_search_locations[0]) / "libmxnet.so"))
    handle = ctypes.c_void_p()
    kind_of_command = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    nothing = kind_of_command(lambda *command: None)
    status: int = library.MXKVStoreCreate(b"dist", ctypes.byref(handle))
    return status or int(library.MXKVStoreRunServer(handle, nothing, None))


@contextmanager
def served(process: Process) -> Iterator[None]:
    """Meanwhile the first process has a scheduler, and each one a server; all call it.

    With as many servers as workers no host has to receive what all others send. Raises RunError if
    the scheduler does not come or cannot be reached.
    """
    children: list[Child] = []
    try:
        if process.rank == 0:
            scheduler, port = started_scheduler(process)
            children.append(scheduler)
            process.gather(port)
        else:
            port = process.gather(0)[0]
        where = environment(process, port)
        if not reached(where["DMLC_PS_ROOT_URI"], port):
            raise RunError(f"MXNet's scheduler at {where['DMLC_PS_ROOT_URI']} cannot be reached")
        children.append(start("server", where))
        for child in children:
            threading.Thread(target=mind, args=(child,), daemon=True).start()
        os.environ |= {**where, "DMLC_ROLE": "worker"}
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def environment(process: Process, port: int) -> dict[str, str]:
    """What tells a worker or server where the scheduler is, and how others reach it itself.

    Raises RequestError if that is by IPv6, which this kvstore does not know.
    """
    addresses = process.addresses or [LOOPBACK] * process.count
    if any(":" in address for address in addresses):
        raise RequestError("MXNet's kvstore reaches hosts by IPv4 alone: give IPv4 addresses")
    return {
        "DMLC_PS_ROOT_URI": addresses[0],
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NODE_HOST": addresses[process.rank],
        "DMLC_NUM_WORKER": str(process.count),
        "DMLC_NUM_SERVER": str(process.count),
    }


def started_scheduler(process: Process) -> tuple[Child, int]:
    """A scheduler that listens, and its port. Raises RunError if none comes."""
    address = environment(process, 0)["DMLC_PS_ROOT_URI"]
    limit = time.monotonic() + COMING
    while time.monotonic() < limit:
        with socket.create_server((address, 0)) as free:
            port = free.getsockname()[1]
        # It cannot be given port 0, so another program may have come before it.
        child = start("scheduler", environment(process, port))
        if reached(address, port, child):
            return child, port
        child.kill()
        child.wait()
    raise RunError("MXNet's scheduler does not come")


def start(role: str, where: Mapping[str, str]) -> Child:
    """A process in this role, which ends with this one and minds no signal that is for all."""
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    command = [sys.executable, "-m", "frameworks.mxnet.servers", role, str(os.getpid())]
    with held_back():  # until it minds none
        return subprocess.Popen(command, env={**os.environ, **where, "PYTHONPATH": path})


def reached(address: str, port: int, child: Child | None = None) -> bool:
    """Whether somebody listens there within COMING seconds, or until `child` ends."""
    limit = time.monotonic() + COMING
    while time.monotonic() < limit and (child is None or child.poll() is None):
        try:
            socket.create_connection((address, port), timeout=COMING).close()
        except OSError:
            time.sleep(LOOK)
        else:
            return True
    return False


def mind(child: Child) -> None:
    """Ends this process if its server fails: all workers would wait for it for ever."""
    if child.wait() > 0:
        print("MXNet's kvstore failed: see above", file=sys.stderr, flush=True)
        os._exit(1)


def main(role: str, parent: str) -> int:
    """Serves, and ends with the parent at the latest."""
    for number in ENDING:  # a scheduler sends them to all processes: who trains ends in order
        signal.signal(number, signal.SIG_IGN)
    let_through()
    end_with(int(parent))
    return serve(role)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
