"""How a run gets its processes: this one, those of a launcher, or one for each device."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from common.backends.devices import ALONE, DeviceRequest, Process
from common.backends.forking import in_processes
from frameworks.pytorch import PRELOAD
from frameworks.pytorch.rendezvous import (
    Rendezvous,
    interface_used,
    run_in_group,
)


def launch(
    worker: Callable[[Process], None],
    request: DeviceRequest,
    options: object,
    process: Process = ALONE,
) -> None:
    """Calls `worker` here, in a group of all processes if there are several."""
    if process.count == 1:
        worker(process)
    else:
        launch_processes(worker, 1, process)


def launch_processes(
    worker: Callable[[Process], None], count: int, process: Process = ALONE
) -> None:
    """Calls `worker` in `count` processes for each of those that a launcher has started.

    Raises RequestError or RunError as a worker did, and RunError if a process died; all others are
    ended then.
    """
    parts = [_part(process, count, index) for index in range(count)]
    with interface_used(process):
        if process.count * count == 1:
            run_in_group(worker, process)
            return
        rendezvous = Rendezvous.of(process)
        if count == 1:
            run_in_group(worker, process, rendezvous)
        else:
            there = replace(rendezvous, store=None)  # which stays in this process
            in_processes(partial(run_in_group, worker, rendezvous=there), parts, PRELOAD)


def _part(process: Process, count: int, index: int) -> Process:
    """One of the `count` processes that a process of a launcher starts."""
    return Process(
        rank=process.rank * count + index,
        count=process.count * count,
        local_rank=process.local_rank * count + index,
        local_count=process.local_count * count,
        hosts=tuple(host for host in process.hosts for _ in range(count)),
        addresses=tuple(address for address in process.addresses for _ in range(count)),
    )
