"""A chapter without a framework."""

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import SETTINGS, config_of
from numpy_chapter import PLACE, NumpyChapter, standing_in

from common.base.arrays import Array, Weights
from common.data.synthetic import synthetic
from common.training.cli import main

RECORD = Path("out", "pytorch-scratch-3dev.json")
KEPT = Path("kept")
EVERY = ["--checkpoint-dir=kept", "--checkpoint-every=2", "--batch-size=10", "--dtype=float64"]
FLAGS = ["--devices=3", "--batch-size=8", "--steps=7", "--dataset=synthetic", "--out=out"]


class FakeChapter(NumpyChapter):
    """Each step adds `lr` to every weight."""

    def __init__(self, loss: Callable[[int], float] = lambda step: 1 / step) -> None:
        """`loss` gives the loss of a step, counted from 1."""
        self.loss = loss
        self.calls: list[str] = []
        self.batches: list[tuple[Array, Array]] = []
        self.rates: list[float] = []
        self.first: list[tuple[Array, Array]] = []

    def train_batch(self, X: Array, y: Array, lr: float) -> float:
        self.calls.append("train_batch")
        self.batches.append((X, y))
        self.rates.append(lr)
        for replica in self.replicas:
            for values in replica.values():
                values += lr
        return self.loss(len(self.batches))

    def gradients(self, X: Array, y: Array) -> Weights:
        self.calls.append("gradients")
        self.first.append((X, y))
        return {name: np.full_like(values, 3) for name, values in self.replicas[0].items()}

    def predict(self, X: Array) -> Array:
        self.calls.append("predict")
        classes = (X[:, 0, 0, 0] * 255).round().astype(int)
        logits: Array = np.eye(10)[classes] + self.replicas[0]["fc2.bias"]
        return logits

    def export(self) -> Weights:
        return self.replicas[0]

    def synchronize(self, replicas: Any) -> None:
        self.calls.append("synchronize")


@dataclass(frozen=True)
class CommandLine:
    """Runs the fake chapter through the command line."""

    monkeypatch: pytest.MonkeyPatch
    printed: Callable[[], Any]
    """What has been printed since the last call."""

    def __call__(
        self,
        *flags: str,
        loss: Callable[[int], float] = lambda step: 1 / step,
        chapter: Any = None,
        name: str = "scratch",
    ) -> int:
        """Runs a chapter with `FLAGS` and `flags`."""
        self.monkeypatch.setitem(sys.modules, PLACE, standing_in(chapter or FakeChapter(loss)))
        return main("pytorch", name, [*FLAGS, *flags])


@pytest.fixture
def start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    """The command line, in the test's folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr("common.data.dataset.synthetic", partial(synthetic, 30, 10))
    return CommandLine(monkeypatch, capsys.readouterr)


def written() -> Any:
    """The record of the run, as JSON."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def stopping(step: int, number: signal.Signals = signal.SIGTERM) -> Callable[[int], float]:
    """Losses; at one step, this process gets a signal."""

    def loss(at: int) -> float:
        if at == step:
            os.kill(os.getpid(), number)
        return 1 / at

    return loss


CONFIG = config_of(
    SETTINGS
    | {"framework": "pytorch", "devices": 2, "batch_size": 20, "lr": 0.5, "epochs": 2, "seed": 5}
    | {"steps": None, "train_examples": 50, "test_examples": 2300, "init_weights": None}
)
