"""What a command leaves lies where it was asked for, and in the place of nothing else."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_chapter import RECORD, CommandLine


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
    assert command("--save-weights=w") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), why in err) == ("", 1, True)
    assert sorted(Path().rglob("*")) == before
