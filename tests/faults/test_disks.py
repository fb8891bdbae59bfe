"""A disk that is full at a write: at every write of a run in turn."""

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from fake_chapter import CommandLine
from hurt_runs import RUNNER, kept, require_tidy, writes

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


def test_a_run_ends_in_order_and_resumes_when_there_is_room(
    disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start, weights, hurt = CommandLine(monkeypatch, disk), Path("w"), Path("hurt")

    def fill(number: int, at: int, *_: Path) -> None:
        """Fills the disk once the write before that number is done."""
        if at == number - 1:
            with Path("filler").open("wb") as file:
                free = os.statvfs(disk)
                os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize)

    with writes(lambda *_: None) as names:
        assert kept(start, "whole", "--save-weights=w") == 0
    ends = ("safetensors", "json")
    steps = [f"{RUNNER.name}-step{step}.{end}" for step in (2, 4, 5) for end in ends]
    assert names == [f"{RUNNER.name}.json", *steps, "w", *(f"{RUNNER.name}.{end}" for end in ends)]
    assert start("--quiet", "--steps=5", "--seed=1", "--out=earlier") == 0
    for number, name in enumerate(names):
        weights.unlink()
        shutil.copytree("earlier", hurt)
        capsys.readouterr()
        fill(number, -1)
        with writes(partial(fill, number)):
            assert kept(start, "hurt", "--save-weights=w") == 1, name
        Path("filler").unlink()
        (line,) = capsys.readouterr().err.splitlines()
        assert re.search("error: cannot write .*No space left on device", line)
        require_tidy(hurt)
        assert not weights.exists() or load_arrays(weights)
        assert kept(start, "hurt", "--save-weights=w") == 0
        RUNNER.require_same("whole", "hurt")
        require_tidy(hurt)
        shutil.rmtree(hurt)
