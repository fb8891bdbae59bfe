"""Which launcher has started this process, and as which of how many.

`LAUNCHERS` has the variables of each of them. They are read strictly, or refused in a line. Which
of a host's processes this is, none of them has to tell: the processes find out when they meet.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from common.backends.devices import Process
from common.base.errors import RequestError

Environ = Mapping[str, str]
Address = tuple[str, int]
"""A host, by name or by IPv4 address, and a port."""

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
class Launched:
    """What a launcher has told a process: its rank, and how many there are.

    `launcher` in words, for messages and the record; empty if there is none, or one process alone.
    The first process listens at `coordinator`, if there are several.
    """

    launcher: str = ""
    process: Process = field(default_factory=Process)
    coordinator: Address = ("", 0)


class Launcher(NamedTuple):
    """A launcher, of one framework or, if that is empty, of all of them, and its variables.

    It has started this process if one of `signs` is set. `ranks` are those of its rank and of the
    world size; `address` says where rank 0 listens.
    """

    name: str
    framework: str
    signs: tuple[str, ...]
    ranks: tuple[str, str] = ("", "")
    address: tuple[str, ...] = ()

    def sign(self, environ: Environ) -> str:
        """The first of its signs that is set; empty if there is none."""
        found = next((name for name in self.signs if environ.get(name)), "")
        special = self is SLURM and (number(environ.get(found)) or 0) >= SPECIAL
        return "" if special else found

    def process(self, environ: Environ) -> Process:
        """Reads rank and world size. Raises RequestError."""
        if self is TF_CONFIG:
            return tf_config(environ)[0]
        rank, count = (environ.get(name) for name in self.ranks)
        first, second = number(rank), number(count)
        if first is None or second is None or first >= second:
            raise wrong(
                f"{self.sign(environ)} is set, but {self.ranks[0]} {shown(rank)} of "
                f"{self.ranks[1]} {shown(count)} is no process: ranks begin at 0 and end below "
                "the number of processes, set both right"
            )
        return Process(first, second)

    def where(self, environ: Environ) -> Address:
        """Reads the address of the first process. Raises RequestError."""
        if self is TF_CONFIG:
            return tf_config(environ)[1]
        if self is SLURM:
            return first_node(environ)
        for name in self.address:
            if not environ.get(name):
                raise wrong(f"{self.sign(environ)} is set, but not {name}: set both")
        if not self.address:
            raise wrong(
                f"{self.name} does not say where the first process is: "
                "give --coordinator HOST:PORT, its host and a free port"
            )
        host, *port = (environ[name] for name in self.address)
        found = address_of(":".join([host, *port]), " and ".join(self.address))
        # Torchrun itself listens there.
        return (found[0], free_port(found[1])) if self is TORCHRUN else found


RANKS: Final = ("RANK", "WORLD_SIZE")
MASTER: Final = ("MASTER_ADDR", "MASTER_PORT")
JAX: Final = ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "JAX_COORDINATOR_ADDRESS")
DMLC: Final = ("DMLC_WORKER_ID", "DMLC_NUM_WORKER")
ROOT: Final = ("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT")
OPEN_MPI: Final = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
OF_STEP: Final = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")

TORCHRUN: Final = Launcher("torchrun", "pytorch", ("TORCHELASTIC_RUN_ID",), RANKS, MASTER)
TF_CONFIG: Final = Launcher("TF_CONFIG", "tensorflow", ("TF_CONFIG",))
SLURM: Final = Launcher("Slurm", "", ("SLURM_STEP_ID",), OF_STEP)
LAUNCHERS: Final = (
    TORCHRUN,
    Launcher("RANK and WORLD_SIZE", "pytorch", RANKS, RANKS, MASTER),
    TF_CONFIG,
    Launcher("JAX", "jax", JAX, JAX[:2], JAX[2:]),
    Launcher("DMLC", "mxnet", ("DMLC_ROLE", *DMLC), DMLC, ROOT),
    Launcher("Open MPI", "", OPEN_MPI[1:], OPEN_MPI),
    # A batch script has ranks, too, but no step: what it starts itself is alone.
    SLURM,
)
"""The variables of each launcher, inner ones first: of two that serve a framework, one decides."""


def launched(
    framework: str, settings: Mapping[str, Any], environ: Environ = os.environ
) -> Launched:
    """Which process this is, by the flags of hosts among the settings, or by the environment.

    Raises RequestError if what is there does not go together.
    """
    flags = ("launcher", "coordinator", "hosts", "host_rank")
    launcher, given, hosts, rank = (settings[name] for name in flags)
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
    """What the environment says; `where` replaces the address of Slurm or Open MPI."""
    found = [each for each in LAUNCHERS if each.sign(environ)]
    known = [each for each in found if each.framework in ("", framework)]
    if not known:
        for each in found:  # each process would be alone
            raise wrong(
                f"{each.sign(environ)} is set, which {framework} does not read: start it with "
                "Slurm, Open MPI, or --coordinator, --hosts and --host-rank"
            )
        return Launched()
    inner, *others = known
    process = inner.process(environ)
    for each in others if inner is not TORCHRUN else ():  # which starts several for each task
        if (told := each.process(environ)).count > 1 and told != process:
            raise wrong(
                f"{inner.sign(environ)} is set, and says that this is process {process.rank} of "
                f"{process.count}, but {each.name} says {told.rank} of {told.count}: unset it"
            )
    if process.count == 1:
        return Launched()
    if where is None or inner.framework:
        where = inner.where(environ)
    return Launched(inner.name, process, where)


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
    """HOST:PORT. Raises RequestError, whose message has `way_out`."""
    found = re.fullmatch(r"([A-Za-z0-9_.-]+):([0-9]{1,5})", value)
    if not found or not 1 <= int(found[2]) <= 65535:
        raise RequestError(
            f"{source} {shown(value)} is not HOST:PORT: give a name or an IPv4 address, and a "
            f"port from 1 to 65535{way_out}"
        )
    return found[1], int(found[2])


def free_port(number: int) -> int:
    """A port that follows from a number, among those that no process is given by chance."""
    return PORTS[number % len(PORTS)]


def tf_config(environ: Environ) -> tuple[Process, Address]:
    """The process, and the first one's address: the chief is the first, then come the workers."""
    try:
        config = json.loads(environ["TF_CONFIG"])
        cluster, task = config["cluster"], config["task"]
        addresses = [*cluster.get("chief", ()), *cluster.get("worker", ())]
        rank = addresses.index(cluster[task["type"]][task["index"]])
        return Process(rank, len(addresses)), address_of(addresses[0], "TF_CONFIG")
    except (ValueError, LookupError, TypeError, AttributeError):
        raise wrong(
            f"TF_CONFIG {shown(environ['TF_CONFIG'])} is not a cluster of a chief and workers "
            "with lists of addresses, and a task, with type and index, among them: see its guide"
        ) from None


def first_node(environ: Environ) -> Address:
    """The first node of a step of Slurm, and a port of the step's own. Raises RequestError."""
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
