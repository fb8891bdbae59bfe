"""Files that appear whole or not at all, never in the place of what is no file; and locks."""

import errno
import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from common.base.errors import BusyError, RequestError


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a temporary file, which then takes the place of the file at `path`.

    Links are followed. Whatever goes wrong, `path` holds its old content or the new one, and
    nothing else is left. Raises OSError, also where something else than a file would be replaced.
    """
    path = destination(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name may have 255 bytes, and a character up to 4.
    temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(4)}")
    try:
        write(temporary)
        # Some disks say only now that they are full, and after a power cut, a name that was moved
        # before the content was written stands for an empty file.
        with temporary.open("r+b") as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        with suppress(OSError):  # why it could not be written is what matters
            temporary.unlink(missing_ok=True)


def remove_temporaries(folder: Path, files: re.Pattern[str]) -> None:
    """Removes what a killed `write_atomically` has left; no process may write any meanwhile."""
    for path in folder.iterdir():
        match = re.fullmatch(r"\.(.+)\.[0-9a-f]{8}", path.name)
        if match and files.fullmatch(match.group(1)):
            path.unlink(missing_ok=True)


def destination(path: Path) -> Path:
    """The file to which `path` leads. Raises OSError if it cannot be written."""
    if path.exists():
        require_regular(path)
        if not (os.access(path, os.W_OK) and path.stat().st_mode & 0o222):  # root may write any
            raise PermissionError(errno.EACCES, "the file is write-protected", str(path))
    return Path(os.path.realpath(path))


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path` in UTF-8, whole or not at all."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def require_regular(path: Path) -> None:
    """Raises OSError if there is no regular file: a pipe would never be read to its end."""
    if not stat.S_ISREG(path.stat().st_mode):
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))


def require_writable(folder: Path) -> None:
    """Raises RequestError if no file can be written in `folder`."""
    try:
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        what = f"cannot write to {folder}: {error.strerror}"
        raise RequestError(f"{what}; choose another folder") from None


def require_file(path: Path, flag: str, suffix: str = "") -> None:
    """Raises RequestError, which names the flag, if no such file can be written as `path`."""
    if not path.name.endswith(suffix):
        raise RequestError(f"{flag} {path}: name it FILE{suffix}")
    try:
        real = destination(path)
    except OSError as error:
        what = f"{flag}: cannot write to {path}: {error.strerror}"
        raise RequestError(f"{what}; choose another folder or file") from None
    require_writable(real.parent)


def sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def held(folder: Path, name: str, timeout: float = 5) -> Iterator[None]:
    """Holds `name` in a folder, which is made, meanwhile.

    Raises BusyError if another process holds it for longer than `timeout` seconds (by then, what a
    run has started ends once the run is gone), and OSError if no file can be made there. Where the
    file system knows no locks, no process is kept out.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".{name}.lock"
    lock = FileLock(path, timeout=timeout, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        what = f"another run is writing {name} in {folder}"
        raise BusyError(f"{what}: wait for it, or choose another folder") from None
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP):
            raise
    try:
        yield
    finally:
        with suppress(OSError):  # the disk may be read-only by now; an empty file keeps none out
            path.unlink(missing_ok=True)
        lock.release()
