"""One process for each device, as DistributedDataParallel wants it: started, watched, ended."""

import gc
import os
import signal
import threading
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
from common.torchrun import place
from frameworks.pytorch.devices import exact_float32

Worker = Callable[[int], None]

PATIENCE = timedelta(seconds=120)
"""How long a process waits for another one that neither answers nor ends."""

PRELOAD = ("common.run", "frameworks.pytorch.resnet", "torch._dynamo")
"""What all processes import, but for the chapter: each runs it, and would warn of a first copy."""

GRACE = 5
"""Seconds that the others have to end by themselves once a process has failed."""


def launch_processes(worker: Worker, count: int) -> None:
    """Calls `worker(rank)` in one process for each of `count` devices.

    Started by torchrun, this process is one of them already. Raises RequestError or RunError as a
    worker did, and RunError if a process died; all others are ended then.
    """
    threads = max(1, torch.get_num_threads() // count)
    if started := place():
        rank, world = started
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
    how = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    # They are forked by a server that has imported PyTorch, and what DistributedDataParallel asks
    # for: that takes seconds, and each would spend them.
    multiprocessing.set_forkserver_preload(list(PRELOAD))
    reasons: SimpleQueue[Exception] = multiprocessing.get_context(how).SimpleQueue()
    arguments = (worker, count, threads, store.port, reasons)
    context = multiprocessing.start_processes(
        _process, arguments, nprocs=count, join=False, start_method=how
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
    threading.Thread(target=_end_with_parent, daemon=True).start()
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    try:
        run_in_group(worker, rank, count, threads, store)
    except (RequestError, RunError) as error:
        reasons.put(error)
        raise


def _end_with_parent() -> None:
    """Ends this process as soon as the one that asked for it is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _reason(processes: list[Any], reasons: "SimpleQueue[Exception]", error: Exception) -> Exception:
    """Why the run ended: what a worker said, who was killed, or the first error of all."""
    if not reasons.empty():
        return reasons.get()
    for rank, process in enumerate(processes):
        if process.exitcode not in (0, 1, -signal.SIGTERM):
            status = process.exitcode
            how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
            return RunError(f"the process of device {rank} was ended {how}")
    return RunError(f"a process failed: {str(error).strip().splitlines()[-1]}")
