"""What killed runs have left beside their checkpoints goes, and nothing that one of them needs."""

from pathlib import Path
from typing import Any

import pytest
from fake_chapter import RECORD, CommandLine, FakeChapter
from hurt_runs import require_tidy, terminated
from stopping import EVERY, KEPT, stopping

from common.training.checkpoints import read_checkpoint

NAME = RECORD.stem
LAST = KEPT / f"{NAME}-step7.json"


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line, in a folder of its own: three steps are an epoch."""
    return CommandLine(monkeypatch, tmp_path)


def test_parts_of_checkpoints_go_though_no_further_one_is_written(start: CommandLine) -> None:
    assert start(*EVERY) == 0
    for name in (f"{NAME}-step4.safetensors", f"{NAME}-step7.previous.safetensors"):
        KEPT.joinpath(name).write_text("part of a checkpoint")
    assert start(*EVERY, "--resume") == 0
    require_tidy(KEPT, NAME)
    assert len(list(KEPT.iterdir())) == 4


def test_tensors_by_their_second_name_stay_those_of_their_checkpoint(start: CommandLine) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    tensors = KEPT / f"{NAME}-step3.safetensors"
    tensors.rename(KEPT / f"{NAME}-step3.previous.safetensors")
    tensors.write_text("of a run that was killed before it wrote the record")
    assert start(*EVERY, "--resume", loss=stopping(1)) == 143
    for step in (3, 4):
        read_checkpoint(KEPT / f"{NAME}-step{step}.json")
    require_tidy(KEPT, NAME)


def test_a_damaged_checkpoint_stays_until_there_is_a_newer_one(start: CommandLine) -> None:
    assert start(*EVERY, loss=stopping(5)) == 143
    newest = KEPT / f"{NAME}-step5.safetensors"
    newest.write_text("damaged")
    assert start(*EVERY, "--resume", "--steps=7", loss=stopping(1)) == 143
    assert {path.name for path in KEPT.iterdir()} == {
        f"{NAME}-step{step}.{end}" for step in (4, 5) for end in ("json", "safetensors")
    }
    read_checkpoint(newest.with_suffix(".json"))


def test_a_run_that_is_stopped_before_its_first_step_names_no_checkpoint(
    start: CommandLine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replicate = FakeChapter.replicate

    def stopped(*arguments: Any) -> Any:
        terminated()
        return replicate(*arguments)

    monkeypatch.setattr(FakeChapter, "replicate", stopped)
    assert start(*EVERY, "--quiet") == 143
    assert "stopped after step 0 of 7, and kept no checkpoint" in capsys.readouterr().err
    assert not KEPT.exists()
