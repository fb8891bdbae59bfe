"""Whether the processes of a run reach each other at every port, as each framework needs it.

A framework would wait for minutes behind a firewall, or for ever, and not say for whom.
"""

import socket
from typing import Final

from common.backends.devices import Process
from common.base.errors import RunError
from common.hosts.wire import name_of

CONNECT_TIMEOUT: Final = 10
"""Seconds in which a host answers that it is there."""


def require_reach(process: Process) -> None:
    """Tries to reach each other host at a port that the system chooses. All call it.

    Raises RunError that names the host that cannot be reached.
    """
    if len(set(process.hosts)) == 1:
        return
    with _listener(process) as taking:
        ports = process.gather(taking.getsockname()[1])
        for rank in _first_of_others(process):
            address = process.addresses[rank], ports[rank]
            try:
                socket.create_connection(address, timeout=CONNECT_TIMEOUT).close()
            except OSError as error:
                raise RunError(
                    f"cannot reach {name_of(rank, process.hosts[rank])} at {address[0]}, port "
                    f"{address[1]} ({error.strerror or error}): open all ports between the hosts"
                ) from None
        process.gather(None)  # until then, somebody may still want to reach this one


def _listener(process: Process) -> socket.socket:
    address = process.addresses[process.rank]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, 0), family=family, backlog=process.count)
    except OSError as error:
        raise RunError(
            f"others see this host at {address}, which it does not have itself ({error.strerror}): "
            "give in --coordinator an address of the network that the hosts share"
        ) from None


def _first_of_others(process: Process) -> list[int]:
    """A process of each other host."""
    ranks = {host: process.hosts.index(host) for host in process.hosts}
    return [rank for host, rank in ranks.items() if host != process.hosts[process.rank]]
