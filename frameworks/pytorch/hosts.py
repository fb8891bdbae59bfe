"""The processes of a run, and their collectives, by Gloo on CPUs and NCCL on GPUs."""

import gc
import json
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

import torch

# Imported while a group is up, as DistributedDataParallel does when this is not yet there, its
# default arguments would hold that group, and the threads of it, until the process aborts on them.
import torch.distributed.nn
from torch import distributed as dist
from torch.multiprocessing import ProcessContext, ProcessExitedException, start_processes

from common.backends.frameworks import IN_PROCESSES
from common.backends.interface import DeviceRequest, Process
from common.base import errors
from common.base.arrays import Array
from common.base.children import end, end_with_creator
from common.base.errors import RequestError, RunError, StoppedError, UnforeseenError
from common.base.machine import LOOPBACK
from common.base.signals import held_back, leave_to_parent, stoppable
from common.chapters.concise import ConciseOptions
from common.chapters.strategies import StrategiesOptions
from frameworks.pytorch.devices import require

PEER_TIMEOUT: Final = timedelta(seconds=60)
"""How long a process waits for another one that neither answers nor ends."""

GRACE: Final = 3
"""Seconds in which the others end by themselves once a process has failed."""

START: Final = "spawn" if sys.platform == "darwin" else "forkserver"
"""How they start: forked by a process that has no thread and no GPU, as the run may have."""

SHARED: Final = ("common.training.run", "torch._dynamo", "frameworks.pytorch.wrappers")
"""Modules that are loaded once for all processes of a host; not the one that Python runs."""

CRASHES: Final = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV")
"""The signals by which the system ends a process for what it has done itself."""

Worker = Callable[[Process], None]


def launch(
    worker: Worker, request: DeviceRequest, options: ConciseOptions | StrategiesOptions
) -> None:
    """Calls `worker` in a process for each device; `DataParallel` needs one for all.

    Raises RequestError where that would not do what is asked for.
    """
    _, world, *_ = by_torchrun()
    if world > 1 and request.count != world:
        what = f"torchrun has started {world} processes, one a device, not {request.count}"
        raise RequestError(f"{what}: give as many --devices, or leave that out")
    require(replace(request, count=1) if world > 1 else request)
    count = request.count
    if isinstance(options, StrategiesOptions):
        require_microbatches(options, count)
    elif options.wrapper not in IN_PROCESSES:
        if request.kind == "cpu":
            raise RequestError("--wrapper dp needs GPUs: on CPUs it would use one device; take ddp")
        if options.batch_norm == "sync":
            raise RequestError("--wrapper dp cannot synchronize batch norm; take ddp")
        if world > 1:
            raise RequestError("--wrapper dp trains in one process, on one host; take ddp")
        count = 1
    if isinstance(options, StrategiesOptions) or options.wrapper == "fsdp":
        worker = partial(forgetting_layouts, worker)
    launch_processes(worker, count)


def require_microbatches(options: StrategiesOptions, devices: int) -> None:
    """Raises RequestError if a native pipeline has more stages than its order can serve."""
    stages = devices // options.replicas
    too_few = options.microbatches < stages
    if options.strategy == "pipeline" and options.schedule == "1f1b" and too_few:
        raise RequestError(
            f"PyTorch's 1f1b takes as many --microbatches as there are stages, {stages}, or more: "
            "ask for them, or for --schedule gpipe"
        )


def forgetting_layouts(worker: Worker, process: Process) -> None:
    """Calls `worker`, and forgets how split tensors lay: the group's threads would not end."""
    from torch.distributed.tensor.debug import _clear_sharding_prop_cache

    try:
        worker(process)
    finally:
        _clear_sharding_prop_cache()


def launch_processes(worker: Worker, count: int) -> None:
    """Calls `worker` in `count` processes, in one group; or here, where torchrun has started them.

    Raises RequestError or RunError as a worker did, and RunError if a process died; all others are
    ended then.
    """
    rank, world, local_rank, local_count = by_torchrun()
    if world > 1:
        process = Process(rank, world, local_rank, local_count, "torchrun", gathered)
        run_in_group(worker, process)
    elif count == 1:
        run_in_group(worker, Process(gathered=gathered), dist.HashStore())
    else:
        in_processes(worker, count)


def by_torchrun() -> tuple[int, int, int, int]:
    """Rank and world size of this process, of all and on this host."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    rank, world, local_rank, local_count = (int(os.environ.get(name) or 0) for name in names)
    return rank, max(world, 1), local_rank, max(local_count, 1)


def in_processes(worker: Worker, count: int) -> None:
    """Calls `worker` in new processes of this host."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)
    multiprocessing.set_forkserver_preload([*SHARED])
    with stoppable() as stop:
        with held_back():  # in the processes, too, until they let signals through
            context = start_processes(
                begin, (worker, count, store.port), count, join=False, start_method=START
            )
        try:
            wait_for(context, lambda: stop.asked)
        except Exception as error:
            raise cause(error, store, stop.status) from None
        finally:
            end(context.processes)


def wait_for(context: ProcessContext, stops: Callable[[], bool]) -> None:
    """Returns once all processes have ended; if it `stops`, they are asked to, in order."""
    while not context.join(0.2, GRACE):
        for process in context.processes if stops() else ():
            if process.is_alive():  # again and again: a run notes it only once it has begun
                os.kill(process.pid, signal.SIGUSR1)


def begin(index: int, worker: Worker, count: int, port: int) -> None:
    """What each of the processes does."""
    leave_to_parent()
    end_with_creator()
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    process = Process(index, count, index, count, gathered=gathered)
    run_in_group(partial(telling, worker, store), process, store)


def telling(worker: Worker, store: dist.Store, process: Process) -> None:
    """Calls `worker`; tells why it failed, if it is the first one, before its group is gone."""
    try:
        worker(process)
    except Exception as error:
        if not isinstance(error, RequestError | RunError):
            line = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(": ")
            error = UnforeseenError(f"a process failed: {line}")
        about = type(error).__name__, str(error), vars(error), traceback.format_exc()
        store.compare_set("failure", "", json.dumps(about))
        sys.exit(1)


def cause(error: Exception, store: dist.Store, status: int) -> RequestError | RunError:
    """Why processes ended: what the first one told, or else how it ended."""
    ended = error if isinstance(error, ProcessExitedException) else None
    if store.check(["failure"]):
        kind, message, about, details = json.loads(store.get("failure"))
        told: RequestError | RunError = getattr(errors, kind)(message)
        vars(told).update(about)
        told.__cause__ = RuntimeError(details)
        if isinstance(told, StoppedError):
            told.status = status
        # One that is killed tells nothing: others tell that they miss it.
        if not (ended and ended.signal_name and isinstance(told, UnforeseenError)):
            return told
    if ended is None:
        return UnforeseenError(f"a process failed: {str(error).splitlines()[-1]}")
    how = f"by {ended.signal_name}" if ended.signal_name else f"with status {ended.exit_code}"
    crashed = UnforeseenError if ended.signal_name in CRASHES else RunError
    return crashed(f"the process of device {ended.error_index} was ended {how}")


def run_in_group(worker: Worker, process: Process, store: dist.Store | None = None) -> None:
    """Calls `worker` in one of several processes, which find each other by the store.

    Without one, by the variables that torchrun sets.
    """
    dist.init_process_group(
        # By default a build for GPUs uses NCCL only, which has no tensors on a CPU.
        "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
        store=store,
        rank=process.rank,
        world_size=process.count,
        timeout=PEER_TIMEOUT,
    )
    try:
        worker(process)
    finally:
        # A wrapper that outlives its group may abort the process at its end.
        gc.collect()
        dist.destroy_process_group()


def gathered(values: Array) -> Array:
    """All-gathers `values`, of one shape everywhere: (processes, ...), by rank."""
    local = torch.from_numpy(values)
    gathered_tensors = [torch.empty_like(local) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered_tensors, local)
    stacked: Array = torch.stack(gathered_tensors).numpy()
    return stacked
