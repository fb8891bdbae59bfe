"""A file that one process holds at a time: its end, whatever ends it, lets go."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from common.base.errors import BusyError


@contextmanager
def held(folder: Path, name: str, timeout: float = 5) -> Iterator[None]:
    """Holds `name` in a folder, which is made, meanwhile.

    Raises BusyError if another process holds it for longer than `timeout` seconds (by then, what a
    run has started ends once the run is gone), and OSError if no file can be made there. Where the
    file system knows no locks, no process is kept out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, limit = folder / f".{name}.lock", time.monotonic() + timeout
    while (file := _open(path)) is None:
        if time.monotonic() > limit:
            what = f"another run is writing {name} in {folder}"
            raise BusyError(f"{what}: wait for it, or choose another folder")
        time.sleep(0.1)
    try:
        yield
    finally:
        with suppress(OSError):  # the disk may be read-only by now; an empty file keeps none out
            path.unlink(missing_ok=True)
        os.close(file)


def _open(path: Path) -> int | None:
    """The file at `path`, locked; None while another process has it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    except OSError:
        return file
    with suppress(FileNotFoundError):
        # The process that had it may have removed its name since it was opened here.
        if os.path.samestat(os.fstat(file), path.stat()):
            return file
    os.close(file)
    return None
