"""What torchrun tells each of the processes that it starts with the same command."""

import os
import time
from typing import Final

from common.backends.frameworks import IN_PROCESSES
from common.base.errors import RequestError

PATIENCE: Final = 5
"""Seconds in which the first process ends: torchrun then ends the others."""


def place() -> tuple[int, int] | None:
    """The rank of this process and how many there are; None if torchrun did not start it.

    Raises RequestError if the environment does not say which of them it is.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    rank, processes = (os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE"))
    if not (rank.isdecimal() and processes.isdecimal() and int(rank) < int(processes)):
        raise RequestError(
            f"TORCHELASTIC_RUN_ID is set, but RANK {rank!r} of WORLD_SIZE {processes!r} is no "
            "process that torchrun has started: start it with torchrun, or unset the variable"
        )
    return int(rank), int(processes)


def require_suited(wrapper: str | None) -> int:
    """The rank of this process, 0 without torchrun. Raises RequestError if there are too many.

    Each of several would train for itself and write the same record. The first says so; the others
    wait, because torchrun ends all as soon as one has ended.
    """
    rank, processes = place() or (0, 1)
    if processes > 1 and wrapper not in IN_PROCESSES:
        if rank > 0:
            time.sleep(PATIENCE)
            raise SystemExit(2)
        raise RequestError(
            f"torchrun started {processes} processes, but one trains on all devices here: start it "
            f"without torchrun (only --wrapper {' or '.join(IN_PROCESSES)} has one for each device)"
        )
    return rank
