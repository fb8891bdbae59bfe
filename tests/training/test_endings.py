"""Runs that cannot go to their end say why, and keep what was good."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from fake_chapter import EVERY, KEPT, RECORD, CommandLine, FakeChapter, start as start, written

from common.base.arrays import Array
from common.base.locks import held
from common.training.checkpoints import checkpoints_in, read_checkpoint

NAME = RECORD.stem


def test_a_loss_that_is_nan_leaves_the_last_good_checkpoint(
    start: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(*EVERY, "--quiet", loss=lambda step: np.nan if step == 5 else 1 / step) == 1
    assert "the loss of step 5 is nan: try a smaller --lr" in capsys.readouterr().err
    newest = checkpoints_in(KEPT, NAME)[0]
    assert len(read_checkpoint(newest).record.losses) == 4
    assert written()["status"] == "failed"
    assert written()["failure"]["step"] == 5


def test_a_weight_that_is_nan_is_in_no_checkpoint(
    start: CommandLine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last update has no loss to show it."""
    train_batch = FakeChapter.train_batch

    def spoiled(self: FakeChapter, X: Array, y: Array, replicas: Any, *rest: Any) -> float:
        loss = train_batch(self, X, y, replicas, *rest)
        for replica in replicas if len(self.batches) == 7 else ():
            replica["conv1.bias"][0] = np.nan
        return loss

    monkeypatch.setattr(FakeChapter, "train_batch", spoiled)
    assert start("--quiet", *EVERY, "--steps=7") == 1
    assert "conv1.bias is not finite after step 7: try a smaller" in capsys.readouterr().err
    assert len(read_checkpoint(checkpoints_in(KEPT, NAME)[0]).record.losses) == 6
    assert written()["status"] == "failed"


def test_two_runs_do_not_write_to_one_folder_at_a_time(
    start: CommandLine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.training.job.held", partial(held, timeout=0.2))
    with held(KEPT, NAME):
        assert start(*EVERY, "--quiet") == 2
    line = f"another run is writing {NAME} in kept: wait for it, or choose another folder"
    assert capsys.readouterr().err == f"python -m frameworks.pytorch.scratch: error: {line}\n"
