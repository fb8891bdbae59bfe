"""A process for each device of a run: started by a server, listened to, and ended together."""

import importlib
import multiprocessing
import os
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection, Pipe

from common.backends.devices import Process
from common.base.children import end_with
from common.base.control import (
    Channel,
    Child,
    Group,
    Member,
    Supervisor,
    ignore_until_noted,
    start_member,
)
from common.base.endings import cause
from common.base.signals import Stop, stoppable, uninterrupted

Work = Callable[[Process], None]


def in_processes(work: Work, processes: Sequence[Process], preload: Sequence[str]) -> None:
    """Calls `work` in a process of its own for each of `processes`, once modules are loaded.

    Raises RequestError or RunError as the work did, and RunError if a process died; all others are
    ended then.
    """
    name = f"the process of devices {processes[0].rank} to {processes[-1].rank}"
    ours, theirs = Pipe()
    # They are started by a process that has no thread yet and no GPU, as this one may have.
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(os.getpid(), preload, work, processes, theirs)
    )
    with uninterrupted():
        server.start()
    theirs.close()
    with stoppable() as stop:
        failure = Group({0: Child(name, server, Channel(ours))}, stop).run()
    if failure is not None:
        raise cause(failure, stop) from RuntimeError(failure.details)


def serve(
    parent: int,
    preload: Sequence[str],
    work: Work,
    processes: Sequence[Process],
    connection: Connection,
) -> None:
    """Starts a process for each of `processes`, and tells the parent how they ended."""
    ignore_until_noted()
    for module in preload:
        importlib.import_module(module)
    children = {
        each.rank: start_member(f"the process of device {each.rank}", partial(as_one, work, each))
        for each in processes
    }
    end_with(parent)
    Supervisor(children, Stop(), Channel(connection)).run()


def as_one(work: Work, process: Process, member: Member) -> None:
    """Does the work as one of the processes, which gather by their framework."""
    work(process)
