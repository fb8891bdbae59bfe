"""Which launcher has started this process, and as which of how many.

`launched` reads the environment. The flags of a start by hand come first, then the framework's own
variables, then Open MPI, then Slurm: the inner one of two launchers decides.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from common.backends.devices import Process
from common.base.errors import RequestError
from common.hosts import openmpi, slurm
from common.hosts.framework_variables import ADDRESS, READ, SIGNS, TORCHRUN, sign
from common.hosts.variables import (
    IGNORE,
    Address,
    Environ,
    Launched as Launched,
    NothingToDoError as NothingToDoError,
    address_of,
    host_of,
    is_loopback,
    port_of,
)

FOR_ALL: Final = (openmpi, slurm)
"""The launchers that serve all frameworks, the inner one first."""


BY_HAND: Final = "by hand"
"""The launcher of a run whose flags say which process it is."""


@dataclass(frozen=True)
class ByHand:
    """What the flags --coordinator, --hosts and --host-rank say; None if they are not given."""

    coordinator: str | None = None
    hosts: int | None = None
    host_rank: int | None = None

    @classmethod
    def of(cls, flags: Any) -> Self:
        """What is said in attributes of these names."""
        return cls(flags.coordinator, flags.hosts, flags.host_rank)


def launched(
    framework: str, launcher: str, by_hand: ByHand, environ: Mapping[str, str] = os.environ
) -> Launched:
    """Which process this is; `launcher` is "auto" or "none", which ignores the environment.

    Raises RequestError if what is there does not go together, and NothingToDoError if others do
    the work of this one.
    """
    given = by_hand.coordinator
    where = None if given is None else address_of(given, "--coordinator")
    if by_hand.hosts is not None or by_hand.host_rank is not None:
        return _plain_if_alone(_by_hand(by_hand, where))
    found = Launched() if launcher == "none" else _from(framework, environ, where)
    if where and found.launcher not in {"", *(each.NAME for each in FOR_ALL)}:
        raise RequestError(
            f"--coordinator contradicts {found.launcher}, which says where the first process is: "
            "leave it out, or give --hosts and --host-rank, too"
        )
    if where and not found.launcher:
        raise RequestError(
            "--coordinator needs --hosts and --host-rank, unless Slurm or Open MPI starts the "
            "processes: give all three"
        )
    return _plain_if_alone(found)


def _plain_if_alone(found: Launched) -> Launched:
    return found if found.process.count > 1 else Launched()


def _by_hand(flags: ByHand, where: Address | None) -> Launched:
    hosts, rank = flags.hosts, flags.host_rank
    if where is None or hosts is None or rank is None:
        raise RequestError("--coordinator, --hosts and --host-rank go together: give all three")
    if not 0 <= rank < hosts:
        raise RequestError(
            f"--host-rank {rank} is none of --hosts {hosts}: the first host is 0, the last is one "
            "less than their number"
        )
    return Launched(BY_HAND, Process(rank, hosts), where)


def _from(framework: str, environ: Environ, where: Address | None) -> Launched:
    """What the environment says; the first process listens at `where`, if that is given."""
    outer = next((each for each in FOR_ALL if each.started(environ)), None)
    mine = sign(framework, environ)
    if outer and (not mine or _address_alone(framework, environ)):
        process = outer.process(environ)
        if process.count > 1:
            where = where or _address(framework, environ) or outer.coordinator(environ)
            _require_reachable(where, process, outer.NAME)
        return Launched(outer.NAME, process, where)
    if mine:
        found = READ[framework](environ)
        if outer and mine != TORCHRUN:  # torchrun starts several for each of Slurm's tasks
            _require_same(found, mine, outer.process(environ), outer.NAME)
        return found
    _require_none_of_others(framework, environ)
    return Launched()


def _address_alone(framework: str, environ: Environ) -> bool:
    """Whether, of the framework's own variables, only those of the address are set."""
    names = set(SIGNS[framework]) - set(ADDRESS.get(framework, ()))
    return not any(environ.get(name) for name in names)


def _address(framework: str, environ: Environ) -> Address | None:
    """The address that the framework's own variables give, if they do. Raises RequestError."""
    names = ADDRESS.get(framework, ())
    values = [environ.get(name, "") for name in names]
    if not any(values):
        return None
    if not all(values):
        raise RequestError(f"{' and '.join(names)} go together: set both, {IGNORE}")
    if len(names) == 1:
        return address_of(values[0], names[0])
    return host_of(values[0], names[0]), port_of(values[1], names[1])


def _require_reachable(where: Address, process: Process, launcher: str) -> None:
    """Raises RequestError if each host would look for the first process on itself."""
    if process.count > process.local_count and is_loopback(where[0]):
        raise RequestError(
            f"{launcher} has started processes on several hosts, and {where[0]}, where the first "
            f"one is said to be, is each host's own: name one that all hosts reach, {IGNORE}"
        )


def _require_same(found: Launched, variable: str, process: Process, launcher: str) -> None:
    """Raises RequestError if two launchers contradict each other, and each has started several."""
    told, other = found.process, process
    if other.count > 1 and (told.rank, told.count) != (other.rank, other.count):
        raise RequestError(
            f"{variable} is set, and says that this is process {told.rank} of {told.count}, but "
            f"{launcher} says {other.rank} of {other.count}: unset it, {IGNORE}"
        )


def _require_none_of_others(framework: str, environ: Environ) -> None:
    """Raises RequestError if only another framework is told who it is: each would run alone."""
    for other in SIGNS:
        if other != framework and (name := sign(other, environ)):
            raise RequestError(
                f"{name} is set, which {framework} does not read: start it with Slurm, Open MPI, "
                f"or --coordinator, --hosts and --host-rank, {IGNORE}"
            )
