"""Which launcher has started this process, and as which of how many.

`LAUNCHERS` has the variables of each of them. They are read strictly, or refused in a line. Which
of a host's processes this is, none of them has to tell: the processes find out when they meet.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from common.backends.devices import Process
from common.base.errors import RequestError

Environ = Mapping[str, str]
Address = tuple[str, int]
"""A host, by name or by IP address without brackets, and a port."""

BY_HAND: Final = "by hand"
"""The launcher of a run whose flags say which process it is."""

IGNORE: Final = "or let --launcher none ignore the environment"
"""The way out that every message ends with."""

PORTS: Final = range(61000, 65536)
"""Ports that Linux gives to no process that does not ask for one: 60999 is the last it gives."""

APART: Final = 101
"""Between the ports of a job of Slurm and those of the next one: more steps than run at once. It
has no divisor with the number of ports in common, so every port is used."""

SPECIAL: Final = 4_294_967_000
"""Steps of Slurm from here on are no steps of tasks: a batch script, an interactive shell."""


@dataclass(frozen=True)
class ByHand:
    """What the flags --coordinator, --hosts and --host-rank say; None if they are not given."""

    coordinator: str | None = None
    hosts: int | None = None
    host_rank: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """What settings of these names say."""
        return cls(settings["coordinator"], settings["hosts"], settings["host_rank"])


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


def launched(
    framework: str, launcher: str, by_hand: ByHand, environ: Environ = os.environ
) -> Launched:
    """Which process this is; `launcher` is "auto" or "none", which ignores the environment.

    Raises RequestError if what is there does not go together, and NothingToDoError if others do
    the work of this one.
    """
    given, hosts, rank = by_hand.coordinator, by_hand.hosts, by_hand.host_rank
    where = None if given is None else address_of(given, "--coordinator", way_out="")
    if hosts is None and rank is None:
        found = Launched() if launcher == "none" else _from(framework, environ, where)
        if where and found.coordinator != where:
            raise RequestError(
                "--coordinator needs --hosts and --host-rank, unless Slurm or Open MPI alone "
                "starts the processes: give all three, or leave it out"
            )
    elif where is None or hosts is None or rank is None:
        raise RequestError("--coordinator, --hosts and --host-rank go together: give all three")
    elif not 0 <= rank < hosts:
        raise RequestError(
            f"--host-rank {rank} is too large for --hosts {hosts}: the first host is 0, the last "
            f"one is {hosts - 1}"
        )
    else:
        found = Launched(BY_HAND, Process(rank, hosts), where)
    return found if found.process.count > 1 else Launched()


def _from(framework: str, environ: Environ, where: Address | None) -> Launched:
    """What the environment says; the first process listens at `where`, if that is given.

    The inner one of two launchers decides: the framework's own variables, Open MPI, then Slurm.
    """
    outer, inner = (
        next((each for each in LAUNCHERS if each.framework == name and each.sign(environ)), None)
        for name in ("", framework)
    )
    if outer and (not inner or inner.sign(environ) in inner.address):
        process = outer.process(outer, environ)
        if process.count > 1 and where is None:
            # An address alone replaces that of the launcher.
            address = next(each.address for each in LAUNCHERS if each.framework == framework)
            name = next((name for name in address if environ.get(name)), "")
            where = address_in(environ, address, name) if name else outer.where(outer, environ)
        return Launched(outer.name, process, where)
    for each in LAUNCHERS if not inner else ():
        if name := each.sign(environ) if each.framework else "":  # each process would be alone
            raise wrong(
                f"{name} is set, which {framework} does not read: start it with Slurm, Open MPI, "
                "or --coordinator, --hosts and --host-rank"
            )
    if not inner:
        return Launched()
    process = inner.process(inner, environ)
    if outer and inner.name != "torchrun":  # which starts several for each of Slurm's tasks
        of_outer = outer.process(outer, environ)
        if of_outer.count > 1 and of_outer != process:
            raise wrong(
                f"{inner.sign(environ)} is set, and says that this is process {process.rank} of "
                f"{process.count}, but {outer.name} says {of_outer.rank} of {of_outer.count}: "
                "unset it"
            )
    if process.count == 1:
        return Launched()
    return Launched(inner.name, process, inner.where(inner, environ))


def wrong(message: str) -> RequestError:
    """What to raise if variables do not go together."""
    return RequestError(f"{message}, {IGNORE}")


def shown(value: str | None) -> str:
    """A value for a message: one short line, whatever it is."""
    text = value or ""
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def number(value: str | None) -> int | None:
    """A whole number of at most ten digits; None if it is something else."""
    return int(value) if value and re.fullmatch("[0-9]{1,10}", value) else None


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
    for name in names:
        if not environ.get(name):
            raise wrong(f"{sign} is set, but not {name}: set both")
    host, *port = (environ[name] for name in names)
    if port and ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return address_of(":".join([host, *port]), " and ".join(names))


def free_port(number: int) -> int:
    """A port that follows from a number, among those that no process is given by chance."""
    return PORTS[number % len(PORTS)]


def ranked(launcher: "Launcher", environ: Environ) -> Process:
    """Reads rank and number of all from two variables. Raises RequestError."""
    rank, count = (environ.get(name) for name in launcher.ranks)
    first, second = number(rank), number(count)
    if first is None or second is None or first >= second:
        raise wrong(
            f"{launcher.sign(environ)} is set, but {launcher.ranks[0]} {shown(rank)} of "
            f"{launcher.ranks[1]} {shown(count)} is no process: ranks begin at 0 and end below the "
            "number of processes, set both right"
        )
    return Process(first, second)


def addressed(launcher: "Launcher", environ: Environ) -> Address:
    """Reads the address of the first process. Raises RequestError."""
    host, port = address_in(environ, launcher.address, launcher.sign(environ))
    # Where torchrun listens itself.
    return host, free_port(port) if launcher.name == "torchrun" else port


def worker(launcher: "Launcher", environ: Environ) -> Process:
    """A worker of DMLC. Raises NothingToDoError in other processes."""
    role = environ.get("DMLC_ROLE")
    if role in {"server", "scheduler"}:
        raise NothingToDoError(f"DMLC_ROLE is {role}: the first worker starts its own")
    if role != "worker":
        raise wrong(f"DMLC_ROLE {shown(role)} is not worker, server or scheduler: set one of them")
    return ranked(launcher, environ)


def tf_config(environ: Environ) -> tuple[Process, list[Address]]:
    """The process, and all addresses: the chief is the first process, then come the workers."""
    try:
        config = json.loads(environ["TF_CONFIG"])
        kind, index, cluster = config["task"]["type"], config["task"]["index"], config["cluster"]
        chief, workers = (list(cluster.get(each, [])) for each in ("chief", "worker"))
        alike = {"chief": chief, "worker": workers}[kind]
        there = index in range(len(alike)) and not cluster.keys() - {"chief", "worker"}
        addresses = [address_of(each, "TF_CONFIG") for each in (*chief, *workers)]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise wrong(
            f"TF_CONFIG {shown(environ['TF_CONFIG'])} is not a cluster of a chief and workers "
            "alone, with lists of addresses, and a task, with type and index: see its guide"
        ) from None
    if not there or len(chief) > 1 or len(set(addresses)) < len(addresses):
        raise wrong(
            f"TF_CONFIG has {len(chief)} chiefs and {len(workers)} workers, and this is {kind} "
            f"{index}: name at most one chief, each address once, and this process"
        )
    return Process(index + (len(chief) if kind == "worker" else 0), len(addresses)), addresses


def of_mpirun(launcher: "Launcher", environ: Environ) -> Address:
    """The host where mpirun itself runs, and a port of the job's own.

    Raises RequestError if the first process is on another host, or mpirun does not say where it is.
    """
    of_all = environ.get("OMPI_MCA_orte_hnp_uri", "")
    found = re.match(r"([0-9]+)\.[0-9]+;tcp6?://(\[[0-9a-fA-F:]+\]|[0-9.]+)", of_all)
    way_out = "give --coordinator HOST:PORT, the first process's host and a free port"
    if not found:
        raise wrong(
            f"OMPI_MCA_orte_hnp_uri does not say where mpirun runs, as Open MPI 4 does: {way_out}"
        )
    is_first = environ.get("OMPI_COMM_WORLD_RANK") == "0"
    if is_first and environ.get("OMPI_MCA_orte_local_daemon_uri") != of_all:
        raise wrong(
            f"mpirun runs on another host than the first process: start it there, {way_out}"
        )
    return found[2].strip("[]"), free_port(int(found[1]) >> 16)


def of_srun(launcher: "Launcher", environ: Environ) -> Address:
    """The first node of the step, and a port of the step's own.

    Raises RequestError if the first task is elsewhere, or the variables do not say.
    """
    if environ.get("SLURM_DISTRIBUTION", "").startswith("arbitrary"):
        raise wrong(
            "Slurm tells no task where the first one is if srun has --distribution=arbitrary: "
            "leave it out, give --coordinator HOST:PORT"
        )
    nodes, job = (environ.get(name) for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_ID"))
    # Of n[1-3,07],m2.
    first = re.match(r"((?:[^\[\],\s]|\[[0-9][0-9,-]*\])+)(?:,|$)", nodes or "")
    at, step = number(job), number(environ["SLURM_STEP_ID"])
    if not first or at is None or step is None:
        raise wrong(
            f"SLURM_STEP_NODELIST {shown(nodes)} and SLURM_JOB_ID {shown(job)} do not say where "
            "the first task is: use srun"
        )
    return re.sub(r"\[([0-9]+)[0-9,-]*\]", r"\1", first[1]), free_port(at * APART + step)


class Launcher(NamedTuple):
    """A launcher, of one framework or, if that is empty, of all of them.

    It has started this process if one of `signs` is set. `ranks` are the variables of a process's
    rank and of the number of all, `address` those that say where the first one listens.
    """

    name: str
    framework: str
    signs: tuple[str, ...]
    ranks: tuple[str, str] = ("", "")
    address: tuple[str, ...] = ()
    process: "Callable[[Launcher, Environ], Process]" = ranked
    where: "Callable[[Launcher, Environ], Address]" = addressed

    def sign(self, environ: Environ) -> str:
        """The first of its signs that is set; empty if there is none."""
        if self.name == "Slurm" and (number(environ.get(self.signs[0])) or 0) >= SPECIAL:
            return ""
        return next((name for name in self.signs if environ.get(name)), "")


RANKS: Final = ("RANK", "WORLD_SIZE")
MASTER: Final = ("MASTER_ADDR", "MASTER_PORT")
IN_JAX: Final = ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES")
IN_DMLC: Final = ("DMLC_WORKER_ID", "DMLC_NUM_WORKER")
ROOT: Final = ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT")
OF_ALL: Final = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")

LAUNCHERS: Final = (
    Launcher("torchrun", "pytorch", ("TORCHELASTIC_RUN_ID",), RANKS, MASTER),
    Launcher("RANK and WORLD_SIZE", "pytorch", RANKS, RANKS, MASTER),
    Launcher(
        *("TF_CONFIG", "tensorflow", ("TF_CONFIG",)),
        process=lambda launcher, environ: tf_config(environ)[0],
        where=lambda launcher, environ: tf_config(environ)[1][0],
    ),
    Launcher(
        *("JAX", "jax", (*IN_JAX[::-1], "JAX_COORDINATOR_ADDRESS"), IN_JAX),
        address=("JAX_COORDINATOR_ADDRESS",),
    ),
    Launcher("DMLC", "mxnet", ("DMLC_ROLE", *IN_DMLC[::-1], *ROOT), IN_DMLC, ROOT, worker),
    # The inner one first.
    Launcher("Open MPI", "", OF_ALL[1:], OF_ALL, where=of_mpirun),
    # A batch script has ranks, too, but no step: what it starts itself is alone.
    Launcher(
        *("Slurm", "", ("SLURM_STEP_ID",), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")),
        where=of_srun,
    ),
)
"""The variables of each launcher; of two for one framework, the first one decides."""
