"""The processes of a virtual host, seen from outside."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def processes(init: int) -> list[int]:
    """Every process in the namespace of `init`, but for itself."""
    space = _space(init)
    assert space != _space(os.getpid()), "this is no host, but the machine itself"
    found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [process for process in found if process != init and _space(process) == space]


def wait(until: Callable[[], bool], what: str, seconds: float = 20) -> None:
    """Returns as soon as `until` holds. Raises TimeoutError, which is an OSError."""
    end = time.monotonic() + seconds
    while not until():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} after {seconds} s")
        time.sleep(0.05)


def send(process: int, number: signal.Signals) -> None:
    """Sends a signal, if the process is still there."""
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _space(process: int) -> str:
    try:
        return str(Path(f"/proc/{process}/ns/pid").readlink())
    except OSError:
        return ""
