"""Which launcher has started this process, and as which of how many.

Which of a host's processes this is, the processes find out when they meet.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from common.backends.devices import Process
from common.base.errors import RequestError

Reader = Callable[[Mapping[str, str]], Sequence[str]]
"""Reads some values of an `Environ`."""

Address = tuple[str, int]
"""A host, by name or by IPv4 address, and a port."""

BY_HAND: Final = "by hand"
"""The launcher of a run whose flags say which process it is."""

PORTS: Final = range(61000, 65536)
"""Ports that Linux gives to no process that does not ask for one: 60999 is the last it gives."""


@dataclass(frozen=True)
class Launched:
    """What a launcher has told a process: its rank, and how many there are.

    `launcher` in words, for messages and the record; empty if there is none, or one process alone.
    The first process listens at `coordinator`, if there are several.
    """

    launcher: str = ""
    process: Process = field(default_factory=Process)
    coordinator: Address = ("", 0)


class Environ(dict[str, str]):
    """The variables that are set, and not empty. Raises RequestError for another one."""

    def __missing__(self, name: str) -> str:
        raise wrong(f"variables of a launcher are set, but not {name}: set all of them")


class Launcher(NamedTuple):
    """A launcher, of one framework or, if that is empty, of all of them.

    It has started this process if one of `signs` is set. `ranks` reads rank and world size,
    `address` the host and the port, or HOST:PORT, at which rank 0 listens.
    """

    name: str
    framework: str
    signs: tuple[str, ...]
    ranks: Reader
    address: Reader

    def sign(self, environ: Environ) -> str:
        """The first of its signs that is set; empty if there is none."""
        return next((name for name in self.signs if name in environ), "")

    def process(self, environ: Environ) -> Process:
        rank, count = self.ranks(environ)
        if not (rank.isdecimal() and count.isdecimal() and int(rank) < int(count)):
            what = f"{self.name} says rank {rank[:60]!r} of {count[:60]!r}, which is no process"
            why = "ranks begin at 0 and end below the number of processes"
            raise wrong(f"{what}: {why}, set both right")
        return Process(int(rank), int(count))

    def coordinator(self, environ: Environ) -> Address:
        return address_of(":".join(self.address(environ)), self.name, wrong)


def variables(*names: str) -> Reader:
    return lambda environ: [environ[name] for name in names]


def torchrun_address(environ: Mapping[str, str]) -> Sequence[str]:
    """Torchrun itself listens at its port."""
    port = environ["MASTER_PORT"]
    return environ["MASTER_ADDR"], str(free_port(int(port))) if port.isdecimal() else port


def tf_config(environ: Mapping[str, str]) -> Sequence[str]:
    """Rank, world size and the first one's address: the chief is the first, then come workers."""
    try:
        config = json.loads(environ["TF_CONFIG"])
        cluster, task = config["cluster"], config["task"]
        addresses = [*cluster.get("chief", ()), *cluster.get("worker", ())]
        rank = addresses.index(cluster[task["type"]][task["index"]])
        return str(rank), str(len(addresses)), str(addresses[0])
    except (ValueError, LookupError, TypeError, AttributeError):
        raise wrong(
            f"TF_CONFIG {environ['TF_CONFIG'][:60]!r} is not a cluster of a chief and workers "
            "with lists of addresses, and a task, with type and index, among them: see its guide"
        ) from None


def first_node(environ: Mapping[str, str]) -> Sequence[str]:
    """The first node of a step of Slurm, and a port of the step's own."""
    nodes, job = environ["SLURM_STEP_NODELIST"], environ["SLURM_JOB_ID"]
    # Of n[1-3,07],m2.
    first = re.match(r"((?:[^\[\],\s]|\[[0-9][0-9,-]*\])+)(?:,|$)", nodes)
    if not first:
        raise wrong(f"SLURM_STEP_NODELIST {nodes[:60]!r} does not name the first node: use srun")
    host = re.sub(r"\[([0-9]+)[0-9,-]*\]", r"\1", first[1])
    # Fewer steps of a job run at once. It has no divisor in common with the number of ports.
    return host, str(free_port(101 * int(job) + int(environ["SLURM_STEP_ID"])))


def free_port(number: int) -> int:
    """A port that follows from a number, among those that no process is given by chance."""
    return PORTS[number % len(PORTS)]


RANKS: Final = ("RANK", "WORLD_SIZE")
MASTER: Final = variables("MASTER_ADDR", "MASTER_PORT")
JAX: Final = ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "JAX_COORDINATOR_ADDRESS")
DMLC: Final = ("DMLC_WORKER_ID", "DMLC_NUM_WORKER")
ROOT: Final = variables("DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT")
SIZE: Final = "OMPI_COMM_WORLD_SIZE"
MPI: Final = variables("OMPI_COMM_WORLD_RANK", SIZE)
TASK: Final = variables("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")

LAUNCHERS: Final = (
    # It starts several processes for each task of another launcher.
    Launcher("torchrun", "pytorch", ("TORCHELASTIC_RUN_ID",), variables(*RANKS), torchrun_address),
    Launcher("RANK and WORLD_SIZE", "pytorch", RANKS, variables(*RANKS), MASTER),
    Launcher(
        *("TF_CONFIG", "tensorflow", ("TF_CONFIG",)),
        lambda environ: tf_config(environ)[:2],
        lambda environ: tf_config(environ)[2:],
    ),
    Launcher("JAX", "jax", JAX, variables(*JAX[:2]), variables(JAX[2])),
    Launcher("DMLC", "mxnet", ("DMLC_ROLE", *DMLC), variables(*DMLC), ROOT),
    Launcher("Open MPI", "", (SIZE,), MPI, variables("--coordinator HOST:PORT")),
    # A batch script has a rank, too, but no step: what it starts itself is alone.
    Launcher("Slurm", "", ("SLURM_STEP_ID",), TASK, first_node),
)
"""The variables of each launcher, inner ones first: of two that serve a framework, one decides."""


def wrong(message: str) -> RequestError:
    return RequestError(f"{message}, or let --launcher none ignore the environment")


def address_of(value: str, source: str, error: Callable[[str], RequestError]) -> Address:
    match = re.fullmatch(r"([A-Za-z0-9_.-]+):([0-9]{1,5})", value)
    if not match or not 1 <= int(match[2]) <= 65535:
        what = f"{source} {value[:60]!r} is not HOST:PORT"
        raise error(f"{what}: give a name or an IPv4 address, and a port from 1 to 65535")
    return match[1], int(match[2])


def launched(
    framework: str, settings: Mapping[str, Any], environ: Mapping[str, str] = os.environ
) -> Launched:
    """Which process this is, by the flags of hosts, or by the environment. Raises RequestError."""
    flags = ("launcher", "coordinator", "hosts", "host_rank")
    launcher, address, hosts, rank = (settings[name] for name in flags)
    where = None if address is None else address_of(address, "--coordinator", RequestError)
    if hosts is None and rank is None:
        known = {name: value for name, value in environ.items() if value}
        this = Launched() if launcher == "none" else _from(framework, Environ(known), where)
        if where and this.coordinator != where:
            unless = "unless Slurm or Open MPI alone starts the processes"
            needed = f"--coordinator needs --hosts and --host-rank, {unless}"
            raise RequestError(f"{needed}: give all three, or leave it out")
    elif where is None or hosts is None or rank is None:
        raise RequestError("--coordinator, --hosts and --host-rank go together: give all three")
    elif not 0 <= rank < hosts:
        what = f"--host-rank {rank} is too large for --hosts {hosts}"
        raise RequestError(f"{what}: the first host is 0, the last one is {hosts - 1}")
    else:
        this = Launched(BY_HAND, Process(rank, hosts), where)
    return this if this.process.count > 1 else Launched()


def _from(framework: str, environ: Environ, where: Address | None) -> Launched:
    """What the environment says; `where` replaces the address of Slurm or Open MPI."""
    started = [launcher for launcher in LAUNCHERS if launcher.sign(environ)]
    known = [launcher for launcher in started if launcher.framework in ("", framework)]
    if not started:
        return Launched()
    if not known:  # each process would be alone
        what = f"{started[0].sign(environ)} is set, which {framework} does not read"
        how = "start it with Slurm, Open MPI, or --coordinator, --hosts and --host-rank"
        raise wrong(f"{what}: {how}")
    inner, *outer = known
    process = inner.process(environ)
    for launcher in outer if inner.name != "torchrun" else ():
        task = launcher.process(environ)
        if task.count > 1 and task != process:
            raise wrong(
                f"{inner.sign(environ)} is set, and says that this is process {process.rank} of "
                f"{process.count}, but {launcher.name} says {task.rank} of {task.count}: unset it"
            )
    if process.count == 1:
        return Launched()
    if where is None or inner.framework:
        where = inner.coordinator(environ)
    return Launched(inner.name, process, where)
