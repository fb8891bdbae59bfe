"""One process for each device, as DistributedDataParallel wants it: started, watched, ended."""

import gc
import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection, Pipe

# Imported while a group is up, as DistributedDataParallel does when this is not yet there, its
# default arguments would hold that group, and the threads of it, until the process aborts on them.
import torch.distributed.nn  # noqa: F401
from torch import distributed as dist

from common.backends.devices import Process
from common.backends.torchrun import place
from common.base.children import end
from common.base.errors import RequestError, RunError, StoppedError
from common.base.signals import Stop, stoppable, uninterrupted
from frameworks.pytorch.members import GRACE, KILLED, Ending, Worker, ask_to_stop, ending, serve

PATIENCE = timedelta(seconds=120)
"""How long a process waits for another one that neither answers nor ends."""

COMING = 25
"""Seconds that processes which a launcher starts wait for the last of them."""

LOOK = 0.2
"""Seconds between two looks at whether somebody has come."""


def launch_processes(worker: Worker, count: int) -> None:
    """Calls `worker` in each of `count` processes.

    Started by torchrun, this process is one of them already. Raises RequestError or RunError as a
    worker did, and RunError if a process died; all others are ended then.
    """
    if started := place():
        if started.count != count:
            raise RequestError(f"torchrun started {started.count} processes for {count} devices")
        run_in_group(worker, started)
    elif count == 1:
        run_in_group(worker, Process(), dist.HashStore())
    else:
        _spawn(worker, count)


def run_in_group(worker: Worker, process: Process, store: dist.Store | None = None) -> None:
    """Calls `worker` in one of several processes, which find each other through `store`.

    Without one, the environment says where to meet, as torchrun sets it. Raises RunError if one of
    them does not come.
    """
    try:
        store = meet(process) if store is None else store
        dist.init_process_group(
            store=store, rank=process.rank, world_size=process.count, timeout=PATIENCE
        )
    except RuntimeError:
        require_loopback()
        raise
    try:
        worker(process)
    finally:
        # A wrapper that outlives its group may abort the process at its end.
        gc.collect()
        dist.destroy_process_group()


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
    here.set(f"{process.rank}", "here")
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
        socket.create_connection((address, port), timeout=GRACE).close()
    except OSError:
        return False
    return True


def missing(who: str) -> RunError:
    """What to raise if somebody does not come."""
    return RunError(f"{who} has not come within {COMING} seconds: start all processes")


def require_loopback() -> None:
    """Raises RunError if this machine does not reach itself: then processes wait for ever."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=GRACE).close()
    except OSError as error:
        raise RunError(
            f"processes cannot meet at 127.0.0.1 ({error.strerror or error}): "
            "`ip link set lo up` switches the loopback interface on"
        ) from None


def _spawn(worker: Worker, count: int) -> None:
    require_loopback()
    # The system chooses the port, so two runs never ask for the same one.
    store = dist.TCPStore("127.0.0.1", 0, None, is_master=True, wait_for_workers=False)
    outcome, tell = Pipe(duplex=False)
    receive, send = Pipe(duplex=False)
    # They are forked by a process that has no thread yet and no GPU, as this one may have.
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(os.getpid(), receive, count, store.port, tell)
    )
    try:
        with uninterrupted():
            server.start()
        tell.close()
        receive.close()
        # A run's data does not fit into a pipe: who sends it waits for the one that reads.
        threading.Thread(target=hand_over, args=(send, worker), daemon=True).start()
        with stoppable(lambda _: ask_to_stop([server])) as stop:
            failure = ending(server, outcome, count)
    finally:
        end([server])
    if failure is not None:
        raise _cause(failure, stop) from RuntimeError(failure.details)


def hand_over(send: Connection, worker: Worker) -> None:
    """Sends the worker, as long as somebody reads."""
    with suppress(OSError):
        send.send(worker)


def join_group(worker: Worker, process: Process, port: int) -> None:
    """Calls `worker` in one of the processes of this machine, which find each other at `port`."""
    run_in_group(worker, process, dist.TCPStore("127.0.0.1", port, is_master=False))


def _cause(failure: Ending, stop: Stop) -> Exception:
    """What to raise: processes that were asked to stop do not know by what signal."""
    if stop.asked and failure.order == KILLED:
        return StoppedError("stopped, and kept nothing of this time", status=stop.status)
    if isinstance(failure.error, StoppedError):
        failure.error.status = stop.status
    return failure.error
