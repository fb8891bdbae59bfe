"""The variables by which one framework alone tells its processes who they are."""

import json
from collections.abc import Callable
from typing import Any, Final

from common.backends.devices import Process
from common.base.errors import RequestError
from common.hosts.variables import (
    IGNORE,
    Environ,
    Launched,
    NothingToDoError,
    address_of,
    free_port,
    host_of,
    local,
    needed,
    number,
    pair,
    port_of,
    shown,
)

TORCHRUN: Final = "TORCHELASTIC_RUN_ID"

SIGNS: Final = {
    "pytorch": (TORCHRUN, "RANK", "WORLD_SIZE"),
    "tensorflow": ("TF_CONFIG",),
    "jax": ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS"),
    "mxnet": (
        *("DMLC_ROLE", "DMLC_NUM_WORKER", "DMLC_WORKER_ID"),
        *("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT"),
    ),
}
"""The variables of each framework: one of them is enough to say that it has been launched."""

ADDRESS: Final = {
    "pytorch": ("MASTER_ADDR", "MASTER_PORT"),
    "jax": ("JAX_COORDINATOR_ADDRESS",),
    "mxnet": ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT"),
}
"""Those that say where the first process is: alone, they may go with Slurm or Open MPI."""


def sign(framework: str, environ: Environ) -> str:
    """The first variable of the framework that is set; empty if there is none."""
    return next((name for name in SIGNS.get(framework, ()) if environ.get(name)), "")


def pytorch(environ: Environ) -> Launched:
    """What torchrun, or RANK and WORLD_SIZE, tell a process."""
    found = sign("pytorch", environ)
    by_torchrun, starter = found == TORCHRUN, "torchrun" if found == TORCHRUN else "a launcher"
    rank, count = pair(environ, found, ("RANK", "WORLD_SIZE"), starter)
    local_rank, local_count = 0, 1
    if by_torchrun or environ.get("LOCAL_WORLD_SIZE"):
        names = ("LOCAL_RANK", "LOCAL_WORLD_SIZE")
        local_rank, local_count = pair(environ, found, names, starter)
    hosts = number(environ.get("GROUP_WORLD_SIZE")) if by_torchrun else None
    if count % local_count or (hosts and hosts * local_count != count):
        raise RequestError(
            f"LOCAL_WORLD_SIZE {local_count} of WORLD_SIZE {count}: each host needs as many "
            "processes: give torchrun the same --nproc-per-node everywhere"
        )
    process = Process(rank, count, local_rank, local_count)
    if count == 1:
        return Launched(process=process)
    host = host_of(needed(environ, "MASTER_ADDR", found), "MASTER_ADDR")
    port = port_of(needed(environ, "MASTER_PORT", found), "MASTER_PORT")
    if by_torchrun:  # it listens at MASTER_PORT itself
        return Launched("torchrun", process, (host, free_port(port)))
    return Launched("RANK and WORLD_SIZE", process, (host, port))


def tensorflow(environ: Environ) -> Launched:
    """What TF_CONFIG tells a process: the chief is the first process, then come the workers."""
    cluster, kind, index = _tf_config(environ["TF_CONFIG"])
    chief, workers = cluster.get("chief", []), cluster.get("worker", [])
    addresses = [address_of(each, "TF_CONFIG") for each in (*chief, *workers)]
    alike = {"chief": chief, "worker": workers}[kind]
    if index >= len(alike) or len(chief) > 1 or len(set(addresses)) < len(addresses):
        raise RequestError(
            f"TF_CONFIG has {len(chief)} chiefs and {len(workers)} workers, and this is {kind} "
            f"{index}: name at most one chief, each address once, and this process, {IGNORE}"
        )
    rank = index + (len(chief) if kind == "worker" else 0)
    of_host = local([host for host, _ in addresses], rank, "TF_CONFIG")
    return Launched("TF_CONFIG", Process(rank, len(addresses), *of_host), addresses[0])


def _tf_config(text: str) -> tuple[dict[str, list[str]], str, int]:
    """The cluster, and the type and index of this process's task. Raises RequestError."""
    try:
        found: Any = json.loads(text)
        cluster, task = found["cluster"], found["task"]
        kind, index = task["type"], number(str(task["index"]))
        lists = all(
            isinstance(each, list) and all(isinstance(one, str) for one in each)
            for each in cluster.values()
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        kind, index, lists = None, None, False
    if index is None or not lists or not isinstance(kind, str):
        raise RequestError(
            f"TF_CONFIG {shown(text)} is not a cluster, with lists of addresses, and a task, with "
            f"type and index: see TensorFlow's guide, {IGNORE}"
        )
    if kind not in {"chief", "worker"} or not cluster.keys() <= {"chief", "worker"}:
        other = kind if kind not in {"chief", "worker"} else min({*cluster} - {"chief", "worker"})
        raise RequestError(
            f"TF_CONFIG has {shown(other)}, but here all processes train alike: name only a chief "
            f"and workers, {IGNORE}"
        )
    return cluster, kind, index


def jax(environ: Environ) -> Launched:
    """What the variables of JAX tell a process."""
    names = ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES")
    rank, count = pair(environ, sign("jax", environ), names, "a launcher")
    name = "JAX_COORDINATOR_ADDRESS"
    where = address_of(needed(environ, name, names[1]), name) if count > 1 else None
    return Launched("JAX", Process(rank, count), where)


def mxnet(environ: Environ) -> Launched:
    """What the variables of DMLC tell a worker. Raises NothingToDoError in other processes."""
    found = sign("mxnet", environ)
    role = needed(environ, "DMLC_ROLE", found)
    if role in {"server", "scheduler"}:
        raise NothingToDoError(f"DMLC_ROLE is {role}: the first worker starts its own")
    if role != "worker":
        raise RequestError(
            f"DMLC_ROLE {shown(role)} is not worker, server or scheduler: set one of them, {IGNORE}"
        )
    rank, count = pair(environ, found, ("DMLC_WORKER_ID", "DMLC_NUM_WORKER"), "a launcher")
    host = host_of(needed(environ, "DMLC_PS_ROOT_URI", found), "DMLC_PS_ROOT_URI")
    port = port_of(needed(environ, "DMLC_PS_ROOT_PORT", found), "DMLC_PS_ROOT_PORT")
    return Launched("DMLC", Process(rank, count), (host, port))


READ: Final[dict[str, Callable[[Environ], Launched]]] = {
    "pytorch": pytorch,
    "tensorflow": tensorflow,
    "jax": jax,
    "mxnet": mxnet,
}
