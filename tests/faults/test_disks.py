"""A disk that is full at a write: at every write of a run in turn."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hurt_runs import NAME, Hurt
from writes import before, written

from common.models.weights_file import load_arrays

pytestmark = pytest.mark.faults

NEW_MOUNTS = 0x00020000
"""CLONE_NEWNS: what is mounted from then on is seen by this process alone, and ends with it."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system in memory; skips the test unless root runs it."""
    if os.geteuid() != 0 or ctypes.CDLL(None).unshare(NEW_MOUNTS):
        pytest.skip("no file system may be mounted here")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_run_ends_in_order_and_resumes_when_there_is_room(hurt: Hurt, disk: Path) -> None:
    def fill() -> None:
        free = os.statvfs(disk)
        with (disk / "filler").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize)

    hurt.move(disk)
    weights = disk / "w"
    with written() as writes:
        assert hurt.kept("whole", f"--save-weights={weights}") == 0, hurt.said
    ends = ("safetensors", "json")
    steps = [f"{NAME}-step{step}.{end}" for step in (2, 4, 6) for end in ends]
    assert writes == [f"{NAME}.json", *steps, "w", *(f"{NAME}.{end}" for end in ends)]
    hurt.earlier("earlier")
    for number, name in enumerate(writes):
        weights.unlink()
        shutil.copytree(disk / "earlier", disk / "hurt")
        with before(number, fill):
            status = hurt.kept("hurt", f"--save-weights={weights}")
        assert status == 1, (number, name)
        (disk / "filler").unlink()
        hurt.require_one_line("cannot write .*No space left on device")
        hurt.require_tidy("hurt")
        if weights.exists():
            load_arrays(weights)
        assert hurt.kept("hurt", f"--save-weights={weights}") == 0, hurt.said
        hurt.runner.require_same("whole", "hurt")
        hurt.require_tidy("hurt")
        shutil.rmtree(disk / "hurt")
