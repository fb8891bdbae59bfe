"""What a run may not go on from, and with which flags."""

from pathlib import Path

import pytest
from fake_chapter import RECORD, CommandLine
from stopping import EVERY, KEPT, stopping


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line, in a folder of its own: three steps are an epoch."""
    return CommandLine(monkeypatch, tmp_path)


def test_checkpoints_of_an_earlier_run_are_not_lost(
    start: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    before = {path.name: path.read_bytes() for path in KEPT.iterdir()}
    assert start(*EVERY, "--lr=0.5") == 2
    assert "step3.json is there already: --resume goes on from it" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in KEPT.iterdir()} == before


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("--lr=0.5", "lr 0.2 there, 0.5 here"),
        ("--seed=9", "seed 8 there, 9 here"),
        ("--steps=8", "steps 7 there, 8 here"),
        ("--train-examples=29", "train_examples 30 there, 29 here"),
        ("--dtype=float32", "dtype float64 there, float32 here"),
        ("--allreduce=ring", "allreduce star there, ring here"),
        ("--threads=1000", "there, 1000 here"),
    ],
)
def test_what_decides_numbers_must_be_the_same(
    start: CommandLine, capsys: pytest.CaptureFixture[str], flag: str, why: str
) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    record = RECORD.read_bytes()
    capsys.readouterr()
    assert start(*EVERY, "--resume", "--quiet", flag) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    assert RECORD.read_bytes() == record


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--resume"], "--resume needs --checkpoint-dir"),
        (["--checkpoint-every=2"], "--checkpoint-every needs --checkpoint-dir"),
        (["--resume-from=nowhere.json"], "--resume-from: nowhere.json cannot be read"),
        (["--checkpoint-dir=a.txt"], "--checkpoint-dir: a.txt is no folder"),
    ],
)
def test_flags_that_cannot_be_are_refused(
    start: CommandLine, capsys: pytest.CaptureFixture[str], flags: list[str], why: str
) -> None:
    Path("a.txt").write_text("")
    assert start("--quiet", *flags) == 2
    assert why in capsys.readouterr().err
    assert not RECORD.exists()
