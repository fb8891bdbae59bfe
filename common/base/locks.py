"""A file that one process holds at a time: its end, whatever ends it, lets go."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from common.base.errors import BusyError

LOCK: Final = ".lock"
"""How the names of files end by which processes keep each other out."""

LOCK_TIMEOUT: Final = 5
"""Seconds in which what a run has started ends, once the run is gone."""


@contextmanager
def held(folder: Path, name: str, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Holds `name` in a folder, which is made, meanwhile; it goes again if nothing is in it.

    Raises BusyError if another process holds it for longer than `timeout`, in seconds, and OSError
    if no file can be made there. Where the file system knows no locks, nobody is kept out.
    """
    path, folders, made = folder / lock_of(name), (folder, *folder.parents), set[Path]()
    limit = time.monotonic() + timeout
    while True:
        made |= {each for each in folders if not each.exists()}
        if (file := _open(path)) is not None:
            break
        if time.monotonic() > limit:
            raise BusyError(
                f"another run is writing {name} in {folder}: wait for it, or choose another folder"
            )
        time.sleep(0.1)
    try:
        yield
    finally:
        with suppress(OSError):  # the disk may be read-only by now; an empty file keeps nobody out
            path.unlink(missing_ok=True)
        os.close(file)
        with suppress(OSError):  # a request that is refused leaves nothing
            for each in (each for each in folders if each in made):
                each.rmdir()


def lock_of(name: str) -> str:
    """What the file is called by which a process holds `name`."""
    return f".{name}{LOCK}"


def _open(path: Path) -> int | None:
    """The file at `path`, locked; None while another process has it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except (FileNotFoundError, FileExistsError):
        if os.path.lexists(path.parent):
            raise
        return None  # whoever had it has just removed the folder, which it had made
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    except OSError:
        return file
    with suppress(FileNotFoundError):
        # Whoever had it may have removed its name since it was opened here.
        if os.path.samestat(os.fstat(file), path.stat()):
            return file
    os.close(file)
    return None
