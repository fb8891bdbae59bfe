"""Every process that a launcher has started: it meets the others, and has a child do the work.

So it hears that another one is lost, whatever a framework waits for, and ends its child then.
"""

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from common.backends.devices import Process
from common.base.children import end, end_frozen
from common.base.control import Group, Member, Supervisor, start_member
from common.base.failures import raise_failure
from common.base.signals import stoppable
from common.hosts.connections import Meeting, name_of, require_reach
from common.hosts.hub import Hub

Work = Callable[[Process], None]


def with_others(meeting: Meeting, work: Work) -> None:
    """Does the work as one of several processes.

    Raises RunError if one of them, which it names, has failed or is lost, or does not come;
    RequestError if they were not started alike; and StoppedError.
    """
    process = meeting.here.process
    with stoppable() as stop:
        listener = None if process.rank else meeting.listener()
        name = name_of(process.rank, socket.gethostname())
        child = start_member(name, partial(train, process, work))  # before there are threads
        try:
            group: Group
            if listener:
                group = Hub(meeting, listener, child, stop)
            else:
                first = name_of(0, meeting.here.coordinator[0])
                group = Supervisor({process.rank: child}, stop, meeting.reach(stop), first)
            raise_failure(group.run(), stop)
        finally:
            end([child.process])


def train(process: Process, work: Work, member: Member) -> None:
    """What the child does, once all others are known and can be reached."""
    parent = os.getppid()
    end_frozen(parent, lambda: os.getppid() == parent)
    there = member.inbox.get()
    hosts, addresses = tuple(there["hosts"]), tuple(there["addresses"])
    here = hosts[process.rank]  # no launcher has to tell which processes share a host
    process = replace(
        process,
        local_rank=hosts[: process.rank].count(here),
        local_count=hosts.count(here),
        hosts=hosts,
        addresses=addresses,
        gather=member.gather,
    )
    require_reach(process)
    work(process)
