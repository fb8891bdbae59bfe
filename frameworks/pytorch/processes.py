"""One process for each device, as DistributedDataParallel wants it: started, watched, ended."""

import gc
import importlib
import multiprocessing
import os
import signal
import socket
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, NamedTuple

# Imported while a group is up, as DistributedDataParallel does when this is not yet there, its
# default arguments would hold that group, and the threads of it, until the process aborts on them.
import torch.distributed.nn  # noqa: F401
from torch import distributed as dist

from common.backends.devices import Process
from common.backends.torchrun import place
from common.base.children import end, end_with, fork
from common.base.errors import RequestError, RunError, StoppedError
from common.base.signals import stoppable, uninterrupted
from frameworks.pytorch import PRELOAD

Worker = Callable[[Process], None]

Outcomes = dict[Any, tuple[int, BaseProcess]]
"""By the pipe that tells how a process ends: which device's it is, and the process."""

PATIENCE = timedelta(seconds=120)
"""How long a process waits for another one that neither answers nor ends."""

GRACE = 5
"""Seconds that the others have to end by themselves once a process has failed."""


KILLED: Final = 1
"""The order of an ending that nobody tells of: a process was killed."""


class Ending(NamedTuple):
    """Why a run ended; of several failures, the first one of the lowest `order` is the cause.

    The order: what a worker said, then who was killed, then the rest. The death of another process
    may have caused the rest.
    """

    order: int
    error: Exception
    details: str


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

    Without one, the environment says where to meet, as torchrun sets it.
    """
    try:
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
    # They are forked by a process that has no thread yet and no GPU, as this one may have.
    server = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(os.getpid(), worker, count, store.port, tell)
    )
    try:
        with uninterrupted():
            server.start()
        tell.close()
        with stoppable(lambda _: ask_to_stop([server])) as stop:
            failure = _outcome(outcome, server, count)
    finally:
        end([server])
    if failure is None:
        return
    if stop.asked and failure.order == KILLED:
        raise StoppedError("stopped before the first step", status=stop.status)
    if isinstance(failure.error, StoppedError):  # the devices' processes do not know by what
        failure.error.status = stop.status
    raise failure.error from RuntimeError(failure.details)


def _outcome(outcome: Connection, server: BaseProcess, count: int) -> Ending | None:
    """How the run ended, once it has."""
    try:
        found: Ending | None = outcome.recv()
        return found
    except EOFError:
        server.join()
        error = RunError(f"the process of devices 0 to {count - 1} {_end(server)}")
        return Ending(KILLED, error, "it did not say")


def _serve(parent: int, worker: Worker, count: int, port: int, tell: Connection) -> None:
    """Forks a process for each device, and tells how they ended."""
    for module in PRELOAD:
        importlib.import_module(module)
    outcomes: Outcomes = {}
    for rank in range(count):
        outcome, of_rank = Pipe(duplex=False)
        process = fork(_process, rank, worker, count, port, of_rank)
        of_rank.close()  # or the next process would keep it open
        outcomes[outcome] = rank, process
    end_with(parent)
    processes = [process for _, process in outcomes.values()]
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda *_: ask_to_stop(processes))
    failures = _failures(outcomes)
    end(processes)
    tell.send(min(failures, key=lambda failure: failure.order, default=None))


def ask_to_stop(processes: Iterable[BaseProcess]) -> None:
    """Asks processes to stop in order: after the same step, all of them."""
    for process in processes:
        if process.pid and process.is_alive():
            os.kill(process.pid, signal.SIGUSR1)


def _process(rank: int, worker: Worker, count: int, port: int, tell: Connection) -> None:
    """What the process of a device does; it tells how it ended."""
    failure = None
    try:
        store = dist.TCPStore("127.0.0.1", port, is_master=False)
        run_in_group(worker, Process(rank, count, rank, count), store)
    except (RequestError, RunError) as error:
        failure = Ending(0, error, traceback.format_exc())
    except Exception as error:
        last = traceback.format_exception_only(error)[-1].strip().splitlines()[0]
        failure = Ending(2, RunError(f"a process failed: {last}"), traceback.format_exc())
    tell.send(failure)


def _failures(outcomes: Outcomes) -> list[Ending]:
    """What went wrong, in this order; after a failure, the others have GRACE seconds to end."""
    found: list[Ending] = []
    while outcomes and (ready := wait(list(outcomes), GRACE if found else None)):
        for outcome in ready:
            failure = _failure(outcome, *outcomes.pop(outcome))
            found += [failure] if failure else []
    return found


def _failure(outcome: Any, rank: int, process: BaseProcess) -> Ending | None:
    """What went wrong in the process of a device, by what it told or how it ended."""
    failure: Ending | None = None
    with suppress(EOFError):
        failure = outcome.recv()
    process.join(GRACE)
    if failure or not process.exitcode:
        return failure
    error = RunError(f"the process of device {rank} {_end(process)}")
    return Ending(KILLED, error, "it did not say")


def _end(process: BaseProcess) -> str:
    status = process.exitcode or 0
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return f"was ended {how}"
