"""Open MPI: what `mpirun` tells the processes that it starts."""

import re
from typing import Final

from common.backends.devices import Process
from common.base.errors import RequestError
from common.hosts.variables import Address, Environ, free_port, pair

NAME: Final = "Open MPI"
SIGN: Final = "OMPI_COMM_WORLD_SIZE"
OTHER: Final = "OMPI_COMM_WORLD_RANK"


def started(environ: Environ) -> bool:
    """Whether mpirun has started this process."""
    return bool(environ.get(SIGN) or environ.get(OTHER))


def process(environ: Environ) -> Process:
    """Which process this is. Raises RequestError if the variables do not go together."""
    sign = SIGN if environ.get(SIGN) else OTHER
    rank, count = pair(environ, sign, (OTHER, SIGN), "mpirun")
    names = ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE")
    local_rank, local_count = pair(environ, sign, names, "mpirun")
    if count % local_count:
        raise RequestError(
            f"mpirun has started {local_count} of {count} processes here, but each host needs as "
            "many: give it --map-by ppr:N:node"
        )
    return Process(rank, count, local_rank, local_count)


def coordinator(environ: Environ) -> Address:
    """Where the first process listens: on the host where mpirun itself runs.

    Raises RequestError if the first process is on another host, or mpirun does not say where it is.
    """
    of_all = environ.get("OMPI_MCA_orte_hnp_uri", "")
    found = re.match(r"([0-9]+)\.[0-9]+;tcp6?://\[?([0-9a-fA-F.:]+)", of_all)
    if not found:
        raise RequestError(
            "OMPI_MCA_orte_hnp_uri does not say where mpirun runs, as Open MPI 4 does: give "
            "--coordinator HOST:PORT, the host of the first process and a free port"
        )
    if environ.get(OTHER) == "0" and environ.get("OMPI_MCA_orte_local_daemon_uri") != of_all:
        raise RequestError(
            "mpirun runs on another host than the first process: start it there, or give "
            "--coordinator HOST:PORT, the host of the first process and a free port"
        )
    job, host = found.groups()
    return host.rpartition(":")[0] if host.count(":") == 1 else host, free_port(int(job) >> 16)
