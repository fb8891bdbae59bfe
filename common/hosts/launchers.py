"""Who has started this process, and which one it is."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from common.backends.devices import Process
from common.base.errors import RequestError


@dataclass(frozen=True)
class ByHand:
    """What flags say of it."""

    coordinator: str | None = None
    hosts: int | None = None
    host_rank: int | None = None


@dataclass(frozen=True)
class Place:
    """Which of the processes this is that a launcher has started."""

    launcher: str
    process: Process
    coordinator: tuple[str, int] | None


def place(
    framework: str, launcher: str, by_hand: ByHand, environ: Mapping[str, str] = os.environ
) -> Place:
    """Which process this is. Raises RequestError."""
    if by_hand.coordinator and by_hand.hosts and by_hand.host_rank is not None:
        host, _, port = by_hand.coordinator.rpartition(":")
        return Place("by hand", Process(by_hand.host_rank, by_hand.hosts), (host, int(port)))
    if by_hand.coordinator or by_hand.hosts:
        raise RequestError("--coordinator, --hosts and --host-rank go together")
    return Place("", Process(), None)
