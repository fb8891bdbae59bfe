"""What torchrun tells each of the processes that it starts with the same command."""

import os
import time
from typing import Final

from common.backends.devices import Process
from common.backends.frameworks import IN_PROCESSES
from common.base.errors import RequestError

PATIENCE: Final = 5
"""Seconds in which the first process ends: torchrun then ends the others."""


def place() -> Process | None:
    """Which process this is of those that torchrun has started; None if it did not start it.

    Raises RequestError if the environment does not say.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return None
    of_all, of_host = _numbers("RANK", "WORLD_SIZE"), _numbers("LOCAL_RANK", "LOCAL_WORLD_SIZE")
    return Process(*of_all, *of_host)


def _numbers(rank: str, count: str) -> tuple[int, int]:
    first, second = (os.environ.get(name, "") for name in (rank, count))
    if not (first.isdecimal() and second.isdecimal() and int(first) < int(second)):
        raise RequestError(
            f"TORCHELASTIC_RUN_ID is set, but {rank} {first!r} of {count} {second!r} is no "
            "process that torchrun has started: start it with torchrun, or unset the variable"
        )
    return int(first), int(second)


def require_suited(wrapper: str | None) -> int:
    """The rank of this process, 0 without torchrun. Raises RequestError if there are too many.

    Each of several would train for itself and write the same record. The first says so; the others
    wait, because torchrun ends all as soon as one has ended.
    """
    process = place() or Process()
    if process.count > 1 and wrapper not in IN_PROCESSES:
        if process.rank > 0:
            time.sleep(PATIENCE)
            raise SystemExit(2)
        one_each = " or ".join(IN_PROCESSES)
        raise RequestError(
            f"torchrun started {process.count} processes, but one trains on all devices here: "
            f"start it without torchrun (only --wrapper {one_each} has one for each device)"
        )
    return process.rank
