"""A process for each device of a run: started by a server, listened to, and ended together."""

import importlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection, Pipe
from multiprocessing.context import SpawnProcess

from common.backends.devices import Process
from common.base.children import begin, end_with
from common.base.control import Channel, Child, Group, Member, raise_failure, start_member
from common.base.signals import Stop, leave_to_parent, stoppable

Work = Callable[[Process], None]


def in_processes(work: Work, processes: Sequence[Process], preload: Sequence[str]) -> None:
    """Calls `work` in a process of its own for each of `processes`, once modules are loaded.

    Raises RequestError or RunError as the work did, and RunError if a process died; all others are
    ended then.
    """
    name = f"the process of devices {processes[0].rank} to {processes[-1].rank}"
    here, there = Pipe()
    # They are started by a process that has no thread yet and no GPU, as this one may have.
    server = SpawnProcess(target=serve, args=(os.getpid(), preload, work, processes, there))
    begin(server)
    there.close()
    with stoppable() as stop:
        raise_failure(Group({0: Child(name, server, Channel(here))}, stop).run(), stop)


def serve(
    parent: int,
    preload: Sequence[str],
    work: Work,
    processes: Sequence[Process],
    connection: Connection,
) -> None:
    """Starts a process for each of `processes`, and tells the parent how they ended."""
    leave_to_parent()
    for module in preload:
        importlib.import_module(module)
    children = {}
    for process in processes:  # they gather by their framework
        name = f"the process of device {process.rank}"
        children[process.rank] = start_member(name, partial(work_alone, work, process))
    end_with(parent)
    Group(children, Stop(), Channel(connection), "its parent").run()


def work_alone(work: Work, process: Process, member: Member) -> None:
    work(process)
