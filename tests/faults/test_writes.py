"""Runs that are killed, or find the disk full, at a write."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from fake_chapter import CommandLine, start as start
from killed_runs import Case, Runner

from common.models.weights_file import load_arrays
from common.records.record import read_tensors, tensors_of
from common.training.checkpoints import checkpoints_in, read_checkpoint

RUNNER = Runner("pytorch", Case("scratch", 3, ()), Path())
RENAME = Path.replace
NEW_MOUNTS = 0x00020000
"""Later mounts are seen only by this process, and end with it."""


def kept(start: CommandLine, name: str) -> int:
    """Runs five steps, with the record and checkpoints in a folder."""
    files = f"--out={name}", f"--checkpoint-dir={name}", "--save-weights=w"
    flags = "--quiet", "--steps=5", "--checkpoint-every=2", "--resume"
    return start(*flags, *files, loss=lambda step: 1.0)


@contextmanager
def writes(strike: Callable[[int, Path, Path], object] = lambda *_: None) -> Iterator[list[str]]:
    """The files written meanwhile; calls `strike` before one is renamed.

    It gets the number of the write, from 0, the temporary file and the path.
    """
    names: list[str] = []

    def struck(temporary: Path, path: Path) -> None:
        names.append(path.name)
        strike(len(names) - 1, temporary, path)
        RENAME(temporary, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", struck)
        yield names


def whole_and_earlier(start: CommandLine) -> list[str]:
    """Makes the runs "whole" and "earlier"; returns the files of the former.

    The runs that are hurt take the place of the other one.
    """
    with writes() as names:
        assert kept(start, "whole") == 0
    ends = ("safetensors", "json")
    steps = [f"{RUNNER.name}-step{step}.{end}" for step in (2, 4, 5) for end in ends]
    assert names == [f"{RUNNER.name}.json", *steps, "w", *(f"{RUNNER.name}.{end}" for end in ends)]
    assert start("--quiet", "--steps=5", "--seed=1", "--out=earlier") == 0
    return names


def require_resumes(start: CommandLine) -> None:
    """Asserts that a hurt run's files are whole or marked, and that it resumes."""
    folder = Path("hurt")
    record = RUNNER.record("hurt")
    assert record.status != "complete" or read_tensors(RUNNER.path("hurt"), record)
    assert not Path("w").exists() or load_arrays(Path("w"))
    for path in checkpoints_in(folder, RUNNER.name):
        read_checkpoint(path)
    assert kept(start, "hurt") == 0
    RUNNER.require_same("whole", "hurt")
    whole = (folder / f"{RUNNER.name}.json", *checkpoints_in(folder, RUNNER.name))
    known = {path for file in whole for path in (file, tensors_of(file))}
    assert {*folder.iterdir()} == known
    shutil.rmtree(folder)


def test_a_kill_within_a_write_loses_nothing(start: CommandLine) -> None:
    """Killed in a write or just after it, a run resumes."""
    names = whole_and_earlier(start)
    for number, in_place in product(range(len(names)), (False, True)):
        Path("w").unlink()
        shutil.copytree("earlier", "hurt")
        killed_at(start, number, in_place=in_place)
        require_resumes(start)


def killed_at(start: CommandLine, number: int, *, in_place: bool) -> None:
    """Runs in a process that is killed at the write of that number."""

    def kill(at: int, temporary: Path, path: Path) -> None:
        if at == number:
            if in_place:
                RENAME(temporary, path)
            else:
                os.truncate(temporary, temporary.stat().st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    if (child := os.fork()) == 0:
        with writes(kill):
            kept(start, "hurt")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system in memory."""
    if os.geteuid() != 0 or ctypes.CDLL(None).unshare(NEW_MOUNTS):
        pytest.skip("no file system may be mounted here")
    (folder := tmp_path / "disk").mkdir()
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.faults
def test_a_run_that_finds_the_disk_full_resumes_when_there_is_room(
    start: CommandLine, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(number: int, at: int, *_: Path) -> None:
        """Fills the disk once the write before that number is done."""
        if at == number - 1:
            with Path("filler").open("wb") as file:
                free = os.statvfs(disk)
                os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize)

    monkeypatch.chdir(disk)
    for number, name in enumerate(whole_and_earlier(start)):
        Path("w").unlink()
        shutil.copytree("earlier", "hurt")
        start.printed()
        fill(number, -1)
        with writes(partial(fill, number)):
            assert kept(start, "hurt") == 1, name
        Path("filler").unlink()
        (line,) = start.printed().err.splitlines()
        assert re.search("error: cannot write .*No space left on device", line)
        require_resumes(start)
