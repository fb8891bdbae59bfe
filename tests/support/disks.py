"""A small disk of a test's own, which is full when it wants it to be."""

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

    def fill(self) -> None:
        """Fills it to the last byte."""
        found = os.statvfs(self.folder)
        if size := found.f_bavail * found.f_frsize:
            with (self.folder / "filler").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)

    def empty(self) -> None:
        """Takes away what has filled it."""
        (self.folder / "filler").unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small disk; skips the test unless root runs it."""
    if os.geteuid() != 0 or ctypes.CDLL(None).unshare(NEW_MOUNTS):
        pytest.skip("no file system may be mounted here")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", folder], check=True)
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
