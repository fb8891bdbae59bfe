"""Small disks of a test's own, which are full or read-only when it wants them to be."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

NEW_MOUNTS: Final = 0x00020000
"""CLONE_NEWNS: what is mounted from then on is seen by this process alone, and ends with it."""


@dataclass(frozen=True)
class Disk:
    """A file system in memory, at `folder`."""

    folder: Path

    def free(self) -> int:
        """The bytes that it still takes."""
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def page(self) -> int:
        """The bytes that it gives at a time."""
        return os.statvfs(self.folder).f_frsize

    def fill(self, leave: int = 0) -> None:
        """Fills it except for so many bytes, rounded down to whole pages."""
        with self.filler.open("wb") as file:
            if (size := self.free() - leave) > 0:
                os.posix_fallocate(file.fileno(), 0, size)

    def empty(self) -> None:
        """Takes away what has filled it."""
        self.filler.unlink(missing_ok=True)

    @property
    def filler(self) -> Path:
        """What fills it."""
        return self.folder / "filler"

    def protect(self) -> None:
        """From now on nothing can be written on it."""
        # A file that is open for writing would keep it from being remounted: a second mount on
        # top of the first one has none.
        mount("--bind", str(self.folder), str(self.folder))
        mount("-o", "remount,bind,ro", str(self.folder))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small disk; skips the test unless root runs it."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    _keep_mounts_to_ourselves()
    folder = tmp_path / "disk"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=128m", "tmpfs", str(folder))
    try:
        yield Disk(folder)
    finally:
        while folder.is_mount():
            subprocess.run(["umount", "-l", str(folder)], check=True)


def mount(*arguments: str) -> None:
    """Calls the command."""
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def _keep_mounts_to_ourselves() -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_MOUNTS):
        pytest.skip(f"no file system can be mounted here: {os.strerror(ctypes.get_errno())}")
    mount("--make-rprivate", "/")
