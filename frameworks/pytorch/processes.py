"""One process for each device, as DistributedDataParallel wants it: started, watched, ended."""

import gc
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.queues import SimpleQueue
from typing import Any

import torch

# Imported while a group is up, as DistributedDataParallel does when this is not yet there, its
# default arguments would hold that group, and the threads of it, until the process aborts on them.
import torch.distributed.nn
from torch import distributed as dist
from torch import multiprocessing
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from common.errors import RequestError, RunError
from frameworks.pytorch.devices import exact_float32

Worker = Callable[[int], None]

PATIENCE = timedelta(seconds=120)
"""How long a process waits for another one that neither answers nor ends."""

GRACE = 5
"""Seconds that the others have to end by themselves once a process has failed."""


def launch_processes(worker: Worker, count: int) -> None:
    """Calls `worker(rank)` in one process for each of `count` devices.

    Started by torchrun, this process is one of them already. Raises RequestError or RunError as a
    worker did, and RunError if a process died; all others are ended then.
    """
    threads = max(1, torch.get_num_threads() // count)
    if "TORCHELASTIC_RUN_ID" in os.environ:
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if world != count:
            raise RequestError(f"torchrun started {world} processes for {count} devices")
        run_in_group(worker, rank, count, threads)
    elif count == 1:
        run_in_group(worker, 0, 1, threads, dist.HashStore())
    else:
        _spawn(worker, count, threads)


def run_in_group(
    worker: Worker, rank: int, count: int, threads: int, store: dist.Store | None = None
) -> None:
    """Calls `worker(rank)` as one of `count` processes, which find each other through `store`.

    Without one, the environment says where to meet, as torchrun sets it.
    """
    torch.set_num_threads(threads)
    exact_float32()
    dist.init_process_group(store=store, rank=rank, world_size=count, timeout=PATIENCE)
    try:
        worker(rank)
    finally:
        # A wrapper that outlives its group may abort the process at its end.
        gc.collect()
        dist.destroy_process_group()


def _spawn(worker: Worker, count: int, threads: int) -> None:
    # The system chooses the port, so two runs never ask for the same one.
    store = dist.TCPStore("127.0.0.1", 0, None, is_master=True, wait_for_workers=False)
    reasons: SimpleQueue[Exception] = multiprocessing.get_context("spawn").SimpleQueue()
    context = multiprocessing.spawn(
        _process, (worker, count, threads, store.port, reasons), nprocs=count, join=False
    )
    try:
        while not context.join(grace_period=GRACE):
            pass
    except (ProcessRaisedException, ProcessExitedException) as error:
        raise _reason(context.processes, reasons, error) from error
    finally:
        for process in context.processes:
            process.kill()


def _process(
    rank: int, worker: Worker, count: int, threads: int, port: int, reasons: "SimpleQueue[Any]"
) -> None:
    """What each process does; errors that are meant for people reach the parent as they are."""
    # By SIGINT it learns that the parent has died; a run in the background would ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    try:
        run_in_group(worker, rank, count, threads, store)
    except (RequestError, RunError) as error:
        reasons.put(error)
        raise


def _reason(processes: list[Any], reasons: "SimpleQueue[Exception]", error: Exception) -> Exception:
    """Why the run ended: what a worker said, who was killed, or the first error of all."""
    if not reasons.empty():
        return reasons.get()
    for rank, process in enumerate(processes):
        if process.exitcode not in (0, 1, -signal.SIGTERM):
            how = f"by {signal.Signals(-process.exitcode).name}" if process.exitcode < 0 else ""
            return RunError(f"the process of device {rank} was ended {how or process.exitcode}")
    return RunError(f"a process failed: {str(error).strip().splitlines()[-1]}")
