"""One process for each device, as DistributedDataParallel wants it: started, watched, ended."""

import gc
import multiprocessing
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
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
from frameworks.pytorch.meeting import ANSWER, meet, watched
from frameworks.pytorch.members import KILLED, Ending, Worker, ask_to_stop, ending, serve

PATIENCE = timedelta(seconds=120)
"""How long a process waits for another one that neither answers nor ends."""


def launch_processes(worker: Worker, count: int) -> None:
    """Calls `worker` in each of `count` processes.

    Started by torchrun, this process is one of them already. Raises RequestError or RunError as a
    worker did, and RunError if a process died; all others are ended then.
    """
    if started := place():
        if started.count != count:
            raise RequestError(f"torchrun started {started.count} processes for {count} devices")
        with loopback_required():
            store = meet(started)
        with watched(started, store):
            run_in_group(worker, started, store)
    elif count == 1:
        run_in_group(worker, Process(), dist.HashStore())
    else:
        _spawn(worker, count)


def run_in_group(worker: Worker, process: Process, store: dist.Store) -> None:
    """Calls `worker` in one of several processes, which find each other through `store`."""
    with loopback_required():
        dist.init_process_group(
            store=store, rank=process.rank, world_size=process.count, timeout=PATIENCE
        )
    try:
        worker(process)
    finally:
        # A wrapper that outlives its group may abort the process at its end.
        gc.collect()
        dist.destroy_process_group()


@contextmanager
def loopback_required() -> Iterator[None]:
    """If processes cannot meet, the reason may be that this machine does not reach itself."""
    try:
        yield
    except RuntimeError:
        require_loopback()
        raise


def require_loopback() -> None:
    """Raises RunError if this machine does not reach itself: then processes wait for ever."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=ANSWER).close()
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
