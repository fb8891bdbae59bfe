"""Files that appear whole or not at all."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from common.errors import RequestError

MOST_FIGURES: Final = 500_000
"""Bytes of a file of figures, ten times what any is known to have."""


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a temporary file beside `path` and then renames it to `path`.

    Whatever goes wrong, `path` holds its old content or the new one, and nothing else is left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        write(temporary)
        # mkstemp makes private files; results are for everyone whom the umask lets in.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path` in UTF-8, whole or not at all."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def require_small(path: Path) -> None:
    """Raises OSError if a file is larger than any of figures is: what is read is shown whole."""
    if (size := path.stat().st_size) > MOST_FIGURES:
        raise OSError(f"{path} cannot be read: it has {size:,} bytes, {MOST_FIGURES:,} at most")


def require_writable(folder: Path) -> None:
    """Raises RequestError if no file can be written in `folder`, or it cannot be made.

    The folder itself is made by whoever writes first: a request that is refused leaves nothing.
    """
    try:
        nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise RequestError(
            f"cannot write to {folder}: {error.strerror}; choose another folder"
        ) from None


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
