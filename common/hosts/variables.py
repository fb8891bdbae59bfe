"""The variables of each launcher: which process this is, and where the first one listens.

They are read strictly, or refused in a line. Which of a host's processes this is, none of them has
to tell: the processes find out when they meet.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from common.backends.devices import Process
from common.base.errors import RequestError

Environ = Mapping[str, str]
Address = tuple[str, int]
"""A host, by name or by IP address without brackets, and a port."""

IGNORE: Final = "or let --launcher none ignore the environment"
"""The way out that every message ends with."""

PORTS: Final = range(61000, 65536)
"""Ports that Linux gives to no process that does not ask for one: 60999 is the last it gives."""

APART: Final = 101
"""Between the ports of a job of Slurm and those of the next one: more steps than run at once. It
has no divisor with the number of ports in common, so every port is used."""

STEP: Final = "SLURM_STEP_ID"

SPECIAL: Final = 4_294_967_000
"""Steps of Slurm from here on are no steps of tasks: a batch script, an interactive shell."""

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
"""The variables of each framework, those of the address last: one says that it was launched."""

ADDRESS: Final = {
    "pytorch": ("MASTER_ADDR", "MASTER_PORT"),
    "jax": ("JAX_COORDINATOR_ADDRESS",),
    "mxnet": ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT"),
}
"""Those that say where the first process is: alone, they may go with Slurm or Open MPI."""


@dataclass(frozen=True)
class Launched:
    """What a launcher has told a process: its rank, and how many there are.

    `launcher` in words, for messages and the record; empty if there is none, or one process alone.
    The first process listens at `coordinator`; None if there is one process.
    """

    launcher: str = ""
    process: Process = field(default_factory=Process)
    coordinator: Address | None = None


class NothingToDoError(Exception):
    """The work that a process has been started for is done by others. Exit status 0."""

    status = 0


def sign(framework: str, environ: Environ) -> str:
    """The first variable of the framework that is set; empty if there is none."""
    return next((name for name in SIGNS.get(framework, ()) if environ.get(name)), "")


def shown(value: str | None) -> str:
    """A value for a message: one short line, whatever it is."""
    text = value or ""
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def needed(environ: Environ, name: str, sign: str) -> str:
    """The value of a variable that has to be there because `sign` is. Raises RequestError."""
    if value := environ.get(name):
        return value
    raise RequestError(f"{sign} is set, but not {name}: set both, {IGNORE}")


def number(value: str | None) -> int | None:
    """A whole number of at most ten digits; None if it is something else."""
    return int(value) if value and re.fullmatch("[0-9]{1,10}", value) else None


def ranked(environ: Environ, sign: str, names: tuple[str, str]) -> Process:
    """The process whose rank and number of all the variables of these two names have.

    Raises RequestError if they do not go together; `sign` is the variable that asks for them.
    """
    rank, count = (environ.get(name) for name in names)
    first, second = number(rank), number(count)
    if first is None or second is None or first >= second:
        raise RequestError(
            f"{sign} is set, but {names[0]} {shown(rank)} of {names[1]} {shown(count)} is no "
            "process: ranks begin at 0 and end below the number of processes, set both right, "
            f"{IGNORE}"
        )
    return Process(first, second)


def address_of(value: str, source: str, way_out: str = f", {IGNORE}") -> Address:
    """HOST:PORT, an IPv6 address in brackets. Raises RequestError, whose message has `way_out`."""
    found = re.fullmatch(r"(\[[0-9A-Za-z:.%]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})", value)
    if not found or not 1 <= int(found[2]) <= 65535:
        raise RequestError(
            f"{source} {shown(value)} is not HOST:PORT: give a name or an IP address, IPv6 in "
            f"brackets, and a port from 1 to 65535{way_out}"
        )
    return found[1].strip("[]"), int(found[2])


def address_in(environ: Environ, names: tuple[str, ...], sign: str) -> Address:
    """HOST:PORT in the variable of this name, or both in two. Raises RequestError."""
    host, *port = (needed(environ, name, sign) for name in names)
    if port and ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return address_of(":".join([host, *port]), " and ".join(names))


def free_port(number: int) -> int:
    """A port that follows from a number, among those that no process is given by chance."""
    return PORTS[number % len(PORTS)]


def pytorch(environ: Environ, sign: str) -> Launched:
    """What torchrun, or RANK and WORLD_SIZE, tell a process."""
    process = ranked(environ, sign, ("RANK", "WORLD_SIZE"))
    if process.count == 1:
        return Launched()
    host, port = address_in(environ, ADDRESS["pytorch"], sign)
    if sign == TORCHRUN:  # it listens at MASTER_PORT itself
        return Launched("torchrun", process, (host, free_port(port)))
    return Launched("RANK and WORLD_SIZE", process, (host, port))


@dataclass(frozen=True)
class TfTask:
    """The place of a process in TF_CONFIG."""

    type: Literal["chief", "worker"]
    index: int


@dataclass(frozen=True)
class TfConfig:
    """TF_CONFIG, where all processes train alike."""

    cluster: dict[Literal["chief", "worker"], list[str]]
    task: TfTask


def tensorflow(environ: Environ, sign: str) -> Launched:
    """What TF_CONFIG tells a process: the chief is the first process, then come the workers."""
    from pydantic import TypeAdapter

    try:
        told = TypeAdapter(TfConfig).validate_json(environ[sign])
    except ValueError:
        raise RequestError(
            f"TF_CONFIG {shown(environ[sign])} is not a cluster of a chief and workers alone, with "
            f"lists of addresses, and a task, with type and index: see TensorFlow's guide, {IGNORE}"
        ) from None
    chief, workers = (told.cluster.get(kind, []) for kind in ("chief", "worker"))
    addresses = [address_of(each, sign) for each in (*chief, *workers)]
    kind, index = told.task.type, told.task.index
    alike = chief if kind == "chief" else workers
    if not 0 <= index < len(alike) or len(chief) > 1 or len(set(addresses)) < len(addresses):
        raise RequestError(
            f"TF_CONFIG has {len(chief)} chiefs and {len(workers)} workers, and this is {kind} "
            f"{index}: name at most one chief, each address once, and this process, {IGNORE}"
        )
    rank = index + (len(chief) if kind == "worker" else 0)
    return Launched("TF_CONFIG", Process(rank, len(addresses)), addresses[0])


def jax(environ: Environ, sign: str) -> Launched:
    """What the variables of JAX tell a process."""
    process = ranked(environ, sign, ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES"))
    if process.count == 1:
        return Launched()
    return Launched("JAX", process, address_in(environ, ADDRESS["jax"], sign))


def mxnet(environ: Environ, sign: str) -> Launched:
    """What the variables of DMLC tell a worker. Raises NothingToDoError in other processes."""
    role = needed(environ, "DMLC_ROLE", sign)
    if role in {"server", "scheduler"}:
        raise NothingToDoError(f"DMLC_ROLE is {role}: the first worker starts its own")
    if role != "worker":
        raise RequestError(
            f"DMLC_ROLE {shown(role)} is not worker, server or scheduler: set one of them, {IGNORE}"
        )
    process = ranked(environ, sign, ("DMLC_WORKER_ID", "DMLC_NUM_WORKER"))
    return Launched("DMLC", process, address_in(environ, ADDRESS["mxnet"], sign))


READ: Final[dict[str, Callable[[Environ, str], Launched]]] = {
    "pytorch": pytorch,
    "tensorflow": tensorflow,
    "jax": jax,
    "mxnet": mxnet,
}
"""By framework: what its own variables tell, of which `sign` is set. Raises RequestError."""


class ForAll(NamedTuple):
    """A launcher that serves all frameworks.

    It has started this process if the variable `sign` is set. `names` are those of a process's rank
    and of the number of all. `coordinator` says where the first one listens.
    """

    name: str
    sign: str
    names: tuple[str, str]
    coordinator: Callable[[Environ], Address]

    def started(self, environ: Environ) -> bool:
        """Whether it has started this process."""
        found = environ.get(self.sign, "")
        return bool(found) and not (self.sign == STEP and (number(found) or 0) >= SPECIAL)

    def process(self, environ: Environ) -> Process:
        """Which process this is. Raises RequestError if the variables do not go together."""
        return ranked(environ, self.sign, self.names)


def of_mpirun(environ: Environ) -> Address:
    """The host where mpirun itself runs, and a port of the job's own.

    Raises RequestError if the first process is on another host, or mpirun does not say where it is.
    """
    of_all = environ.get("OMPI_MCA_orte_hnp_uri", "")
    found = re.match(r"([0-9]+)\.[0-9]+;tcp6?://(\[[0-9a-fA-F:]+\]|[0-9.]+)", of_all)
    if not found:
        raise RequestError(
            "OMPI_MCA_orte_hnp_uri does not say where mpirun runs, as Open MPI 4 does: give "
            f"--coordinator HOST:PORT, the first process's host and a free port, {IGNORE}"
        )
    is_first = environ.get("OMPI_COMM_WORLD_RANK") == "0"
    if is_first and environ.get("OMPI_MCA_orte_local_daemon_uri") != of_all:
        raise RequestError(
            "mpirun runs on another host than the first process: start it there, give "
            f"--coordinator HOST:PORT, the first process's host and a free port, {IGNORE}"
        )
    return found[2].strip("[]"), free_port(int(found[1]) >> 16)


def of_srun(environ: Environ) -> Address:
    """The first node of the step, and a port of the step's own.

    Raises RequestError if the first task is elsewhere, or the variables do not say.
    """
    if environ.get("SLURM_DISTRIBUTION", "").startswith("arbitrary"):
        raise RequestError(
            "Slurm tells no task where the first one is if srun has --distribution=arbitrary: "
            f"leave it out, give --coordinator HOST:PORT, {IGNORE}"
        )
    nodes, job = (needed(environ, name, STEP) for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_ID"))
    first = re.match(r"((?:[^\[\],\s]|\[[0-9][0-9,-]*\])+)(?:,|$)", nodes)  # of n[1-3,07],m2
    at, step = number(job), number(environ[STEP])
    if not first or at is None or step is None:
        raise RequestError(
            f"SLURM_STEP_NODELIST {shown(nodes)} and SLURM_JOB_ID {shown(job)} do not say where "
            f"the first task is: use srun, {IGNORE}"
        )
    return re.sub(r"\[([0-9]+)[0-9,-]*\]", r"\1", first[1]), free_port(at * APART + step)


FOR_ALL: Final = (
    ForAll(
        "Open MPI",
        "OMPI_COMM_WORLD_SIZE",
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        of_mpirun,
    ),
    # A batch script has ranks, too, but no step: what it starts itself is alone.
    ForAll("Slurm", STEP, ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"), of_srun),
)
"""The inner one first."""
