"""What a command leaves lies where it was asked for, and in the place of nothing else."""

import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fake_chapter import RECORD, CommandLine, FakeChapter, written
from named_devices import PLACE, standing_in
from safetensors.numpy import load_file

from common.records.store import read_record, read_tensors
from common.training.cli import main

TENSORS = RECORD.with_suffix(".safetensors")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch, tmp_path)


def lying_here() -> dict[Path, object]:
    """Everything in the working directory: which it is, and what it holds."""
    found: dict[Path, object] = {}
    for path in Path().rglob("*"):
        state = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(state.st_mode) else None
        found[path] = state.st_ino, state.st_mode, content
    return found


Refused = Callable[[Callable[[], int]], str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Asserts that something is refused in one line and changes no file; returns the line."""

    def check(work: Callable[[], int]) -> str:
        before = lying_here()
        assert work() == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert re.fullmatch(r"python -m \S+: error: .+\n", err), err
        assert lying_here() == before
        return err

    return check


@pytest.mark.parametrize(
    ("place", "make", "why"),
    [
        ("w", os.mkfifo, "it is a pipe or a device, not a file"),
        (RECORD, Path.mkdir, "it is a folder, not a file"),
        (TENSORS, os.mkfifo, "it is a pipe or a device, not a file"),
    ],
)
def test_what_cannot_become_a_file_is_refused_at_once(
    command: CommandLine,
    refused: Refused,
    place: str | Path,
    make: Callable[[Path], object],
    why: str,
) -> None:
    Path("out").mkdir()
    make(Path(place))
    flag = "--save-weights" if place == "w" else "--out"
    line = refused(lambda: command("--data-dir=nowhere", "--save-weights=w"))
    assert re.search(f"error: {flag}: cannot write to {place}: {why}", line)


def test_weights_do_not_take_the_place_of_the_record(
    command: CommandLine, refused: Refused
) -> None:
    Path("other").symlink_to(TENSORS)
    for path, what in ((RECORD, "the record"), ("other", "its file of tensors")):
        line = refused(lambda: command("--data-dir=nowhere", f"--save-weights={path}"))  # noqa: B023
        assert f"error: --save-weights {path} is where {what} goes" in line


@pytest.mark.usefixtures("command")
def test_nor_when_only_the_framework_knows_how_many_devices_there_are(
    refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, PLACE, standing_in(FakeChapter()))
    flags = ["--dataset=synthetic", "--steps=1", "--batch-size=8", "--quiet", "--out=out"]
    place = "out/pytorch-scratch-2dev.json"
    line = refused(lambda: main("pytorch", "scratch", [*flags, f"--save-weights={place}"]))
    assert f"error: --save-weights {place} is where the record goes: name another file" in line


def test_links_are_followed_and_stay(command: CommandLine) -> None:
    for name in ("shelf", "far"):
        Path(name).mkdir()
    links = {"out": "shelf", "w": "far/w", str(RECORD): "../far/record"}
    links[str(TENSORS)] = "../far/tensors"
    for name, target in links.items():
        Path(name).symlink_to(target)
    Path("far/w").write_text("old")
    Path("far/w").chmod(0o600)
    assert command("--save-weights=w") == 0
    assert {name: str(Path(name).readlink()) for name in links} == links
    assert written()["status"] == "complete"
    tensors = read_tensors(RECORD, read_record(RECORD))
    assert np.array_equal(load_file("far/w")["fc2.bias"], tensors["weights/fc2.bias"])
    assert stat.S_IMODE(Path("far/w").stat().st_mode) == 0o600
    assert sorted(path.name for path in Path("far").iterdir()) == ["record", "tensors", "w"]


def test_weights_may_replace_those_that_the_run_began_with(command: CommandLine) -> None:
    assert command("--save-weights=w") == 0
    begun = load_file("w")["fc2.bias"]
    assert command("--init-weights=w", "--save-weights=w", "--lr=0.25") == 0
    assert np.allclose(load_file("w")["fc2.bias"], begun + 7 * 0.25)
