"""What torchrun tells each of the processes that it starts with the same command."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def first_speaks(process: Process) -> Iterator[None]:
    """Of what all processes refuse alike, the first one says why; the others wait for its end.

    torchrun ends all processes as soon as one has ended.
    """
    try:
        yield
    except RequestError:
        if process.rank == 0:
            raise
        time.sleep(PATIENCE)
        raise SystemExit(2) from None


def require_suited(process: Process, in_processes: bool) -> None:
    """Raises RequestError if there are too many processes: each would write the same record."""
    if process.count > 1 and not in_processes:
        one_each = " or ".join(IN_PROCESSES)
        raise RequestError(
            f"torchrun started {process.count} processes, but one trains on all devices here: "
            f"start it without torchrun (only --wrapper {one_each} has one for each device)"
        )
