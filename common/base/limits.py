"""The limits that the system sets a process, where they are too low for any framework."""

import resource
import threading
from contextlib import suppress
from typing import Final

from common.base.errors import RequestError

THREADS: Final = 24
"""As many JAX starts on two cores before its first step, PyTorch's DDP 20 on two devices."""

FILES: Final = 64
"""PyTorch's DDP opens 30 at a time on two devices."""

MEMORY: Final = 2**30
"""Bytes of addresses; 600 MB end every framework as it is loaded, by a crash in two of them."""


def require_limits() -> None:
    """Raises RequestError if a limit would end a framework, most often without a clear word."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    memory, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= files < FILES:  # -1: there is none
        raise RequestError(
            f"`ulimit -n` is {files}, and a run opens more files: set it to at least {FILES}"
        )
    if 0 <= memory < MEMORY:
        raise RequestError(
            f"`ulimit -v` is {memory // 1024}, and a framework needs more memory: set it to at "
            f"least {MEMORY // 1024}"
        )
    if (left := threads_left()) < THREADS:
        raise RequestError(
            f"only {left} of the {THREADS} threads that a run may need can be started: raise "
            "`ulimit -u`, or the container's limit of processes"
        )


def threads_left() -> int:
    """How many more threads can be started here, at most `THREADS`.

    The limits, a user's and a container's, are on all of their processes together.
    """
    over, started = threading.Event(), list[threading.Thread]()
    with suppress(RuntimeError):
        for _ in range(THREADS):
            thread = threading.Thread(target=over.wait)
            thread.start()
            started.append(thread)
    over.set()
    for thread in started:
        thread.join()
    return len(started)
