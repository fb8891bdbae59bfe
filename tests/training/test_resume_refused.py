"""What a run may not resume from, and with which flags."""

from pathlib import Path
from typing import Any

import pytest
from fake_chapter import EVERY, KEPT, RECORD, CommandLine, start as start, stopping

from common.records.store import read_record, write_record
from common.training.checkpoints import read_checkpoint

NAME = RECORD.stem


def test_checkpoints_of_an_earlier_run_are_not_lost(
    start: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    before = {path.name: path.read_bytes() for path in KEPT.iterdir()}
    assert start(*EVERY, "--lr=0.5") == 2
    assert "step3.json is there already: --resume continues from it" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in KEPT.iterdir()} == before


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("--lr=0.5", "lr 0.2 there, 0.5 here"),
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


def test_a_run_on_other_devices_that_could_resume_is_not_forgotten(
    start: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    before = {path.name: path.read_bytes() for path in KEPT.iterdir()}
    capsys.readouterr()
    assert start(*EVERY, "--resume", "--quiet", "--devices=2") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "step3.json comes from a run on other devices: 3 there, 2 here" in line
    assert "--devices 3 or --resume-from that file resumes from it" in line
    assert {path.name: path.read_bytes() for path in KEPT.iterdir()} == before
    assert start(*EVERY, "--resume") == 0
    assert start(*EVERY, "--resume", "--devices=2") == 0  # nothing waits for it now
    assert "starting at step 1" in capsys.readouterr().err


def test_devices_on_other_hosts_are_refused_if_each_has_another_number(
    start: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    found = read_checkpoint(KEPT / f"{NAME}-step3.json")
    other = found.record.model_copy(update={"devices": ["n1 cpu:0", "n1 cpu:1", "n2 cpu:0"]})
    write_record(found.path, other, found.tensors)
    capsys.readouterr()
    assert start(*EVERY, "--resume") == 2
    why = "devices by host 2 + 1 there, 3 here"
    assert why in capsys.readouterr().err
    elsewhere = ("--checkpoint-dir=elsewhere", "--out=elsewhere")
    assert start(*EVERY, f"--resume-from={found.path}", *elsewhere) == 0
    assert read_record(Path("elsewhere") / RECORD.name).resumed[0].differences == [why]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"source_sha256": "0" * 64}, "the code has changed since"),
        ({"initial_weights_sha256": "0" * 64}, "initial weights 000000000000 there, "),
        ({"versions": {"numpy": "0"}}, "written with another setup: numpy 0 there"),
    ],
)
def test_a_checkpoint_of_other_code_weights_or_packages_is_refused(
    start: CommandLine, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], why: str
) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    found = read_checkpoint(KEPT / f"{NAME}-step3.json")
    write_record(found.path, found.record.model_copy(update=changes), found.tensors)
    capsys.readouterr()
    assert start(*EVERY, "--quiet", "--resume") == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--resume"], "--resume needs --checkpoint-dir"),
        (["--checkpoint-every=2"], "--checkpoint-every needs --checkpoint-dir"),
        (["--resume-from=nowhere.json"], "--resume-from: nowhere.json cannot be read"),
        (["--device-kind=cpu", "--tf32"], "--tf32 needs GPUs: CPUs multiply all bits"),
        (["--checkpoint-dir=a.txt"], "cannot write to a.txt: Not a directory"),
    ],
)
def test_flags_that_cannot_be_are_refused(
    start: CommandLine, capsys: pytest.CaptureFixture[str], flags: list[str], why: str
) -> None:
    Path("a.txt").write_text("")
    assert start("--quiet", *flags) == 2
    assert why in capsys.readouterr().err
    assert not RECORD.exists()
