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
from common.hosts.variables import (
    ADDRESS,
    FOR_ALL,
    IGNORE,
    READ,
    SIGNS,
    TORCHRUN,
    Address,
    Environ,
    Launched as Launched,
    NothingToDoError as NothingToDoError,
    address_in,
    address_of,
    sign,
)

BY_HAND: Final = "by hand"
"""The launcher of a run whose flags say which process it is."""


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


def launched(
    framework: str, launcher: str, by_hand: ByHand, environ: Mapping[str, str] = os.environ
) -> Launched:
    """Which process this is; `launcher` is "auto" or "none", which ignores the environment.

    Raises RequestError if what is there does not go together, and NothingToDoError if others do
    the work of this one.
    """
    given = by_hand.coordinator
    where = None if given is None else address_of(given, "--coordinator", way_out="")
    if by_hand.hosts is not None or by_hand.host_rank is not None:
        found = _by_hand(by_hand, where)
    else:
        found = Launched() if launcher == "none" else _from(framework, environ, where)
        if where and found.coordinator != where:
            raise RequestError(
                "--coordinator needs --hosts and --host-rank, unless Slurm or Open MPI alone "
                "starts the processes: give all three, or leave it out"
            )
    return found if found.process.count > 1 else Launched()


def _by_hand(flags: ByHand, where: Address | None) -> Launched:
    hosts, rank = flags.hosts, flags.host_rank
    if where is None or hosts is None or rank is None:
        raise RequestError("--coordinator, --hosts and --host-rank go together: give all three")
    if not 0 <= rank < hosts:
        raise RequestError(
            f"--host-rank {rank} is too large for --hosts {hosts}: the first host is 0, the last "
            f"one is {hosts - 1}"
        )
    return Launched(BY_HAND, Process(rank, hosts), where)


def _from(framework: str, environ: Environ, where: Address | None) -> Launched:
    """What the environment says; the first process listens at `where`, if that is given."""
    outer = next((each for each in FOR_ALL if each.started(environ)), None)
    mine, address = sign(framework, environ), ADDRESS.get(framework, ())
    if outer and (not mine or mine in address):
        process = outer.process(environ)
        if process.count > 1 and where is None:
            name = next((each for each in address if environ.get(each)), "")
            where = address_in(environ, address, name) if name else outer.coordinator(environ)
        return Launched(outer.name, process, where)
    if mine:
        found = READ[framework](environ, mine)
        if outer and mine != TORCHRUN:  # torchrun starts several for each of Slurm's tasks
            told, process = found.process, outer.process(environ)
            if process.count > 1 and told != process:
                raise RequestError(
                    f"{mine} is set, and says that this is process {told.rank} of {told.count}, "
                    f"but {outer.name} says {process.rank} of {process.count}: unset it, {IGNORE}"
                )
        return found
    for each in SIGNS:  # each process would run alone
        if name := sign(each, environ):
            raise RequestError(
                f"{name} is set, which {framework} does not read: start it with Slurm, Open MPI, "
                f"or --coordinator, --hosts and --host-rank, {IGNORE}"
            )
    return Launched()
