"""One process for each device, as DistributedDataParallel wants it: started, watched, ended."""

import gc
import multiprocessing
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection, Pipe
from typing import Final

# Imported while a group is up, as DistributedDataParallel does when this is not yet there, its
# default arguments would hold that group, and the threads of it, until the process aborts on them.
import torch.distributed.nn
from torch import distributed as dist

from common.backends.devices import ALONE, Process
from common.base.children import end
from common.base.endings import cause
from common.base.errors import RunError
from common.base.signals import stoppable, uninterrupted
from frameworks.pytorch.hosts import Meeting, gathered_values, use_interface
from frameworks.pytorch.members import Worker, ask_to_stop, ending, serve

PATIENCE = timedelta(seconds=120)
"""How long a process waits for another one that neither answers nor ends."""

ANSWER: Final = 5
"""Seconds in which whoever listens answers."""


def launch_processes(worker: Worker, count: int, process: Process = ALONE) -> None:
    """Calls `worker` in `count` processes for each of those that a launcher has started.

    Raises RequestError or RunError as a worker did, and RunError if a process died; all others are
    ended then.
    """
    use_interface(process)
    places = [_part(process, count, index) for index in range(count)]
    if process.count * count == 1:
        run_in_group(worker, process)
        return
    if not process.addresses:
        require_loopback()
    meeting = Meeting.of(process)
    if count == 1:
        run_in_group(worker, process, meeting)
    else:
        _spawn(worker, places, meeting)


def run_in_group(worker: Worker, process: Process, meeting: Meeting | None = None) -> None:
    """Calls `worker` in one of several processes, which find each other at the meeting."""
    with loopback_required():
        store = meeting.come() if meeting else dist.HashStore()
        dist.init_process_group(
            # By itself a build for GPUs takes NCCL alone, which knows no number on a CPU.
            "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
            store=store,
            rank=process.rank,
            world_size=process.count,
            timeout=PATIENCE,
        )
    try:
        worker(replace(process, gather=gathered_values))
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


def _part(process: Process, count: int, index: int) -> Process:
    """One of the `count` processes that one which a launcher has started starts itself."""
    return Process(
        rank=process.rank * count + index,
        count=process.count * count,
        local_rank=process.local_rank * count + index,
        local_count=process.local_count * count,
        hosts=tuple(host for host in process.hosts for _ in range(count)),
        addresses=tuple(address for address in process.addresses for _ in range(count)),
    )


def _spawn(worker: Worker, places: Sequence[Process], meeting: Meeting) -> None:
    outcome, tell = Pipe(duplex=False)
    receive, send = Pipe(duplex=False)
    # They are forked by a process that has no thread yet and no GPU, as this one may have.
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(os.getpid(), receive, places, (meeting.address, meeting.port), tell)
    )
    try:
        with uninterrupted():
            server.start()
        tell.close()
        receive.close()
        # A run's data does not fit into a pipe: who sends it waits for the one that reads.
        threading.Thread(target=hand_over, args=(send, worker), daemon=True).start()
        with stoppable(lambda _: ask_to_stop([server])) as stop:
            failure = ending(server, outcome, places)
    finally:
        end([server])
    if failure is not None:
        raise cause(failure, stop) from RuntimeError(failure.details)


def hand_over(send: Connection, worker: Worker) -> None:
    """Sends the worker, as long as somebody reads."""
    with suppress(OSError):
        send.send(worker)
