"""What a command leaves lies where it was asked for, and in the place of nothing else."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fake_chapter import RECORD, CommandLine, written
from safetensors.numpy import load_file

from common.records.store import read_record, read_tensors

TENSORS = RECORD.with_suffix(".safetensors")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("place", "make", "why"),
    [
        (Path("w"), os.mkfifo, "--save-weights: cannot write to w: it is a pipe or a device"),
        (RECORD, Path.mkdir, f"--out: cannot write to {RECORD}: it is a folder, not a file"),
        (Path("w"), lambda path: path.symlink_to(RECORD), "--save-weights w is where the record"),
    ],
)
def test_what_cannot_become_a_file_is_refused_at_once(
    command: CommandLine,
    capsys: pytest.CaptureFixture[str],
    place: Path,
    make: Callable[[Path], object],
    why: str,
) -> None:
    Path("out").mkdir()
    make(place)
    before = sorted(Path().rglob("*"))
    assert command("--data-dir=nowhere", "--save-weights=w") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), why in err) == ("", 1, True)
    assert sorted(Path().rglob("*")) == before


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
