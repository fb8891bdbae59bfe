"""The trace of a run, and the wrong steps that it shows."""

from pathlib import Path
from typing import Any

import numpy_chapter as chapters
import pytest
from agreement import failed, judge, make
from fake_chapter import CONFIG

from common.base.arrays import Weights
from common.chapters.concise import ConciseOptions
from common.compare.recorded_steps import recompute
from common.pairs.runs import read_run
from common.records import trace
from common.records.trace import snapshots, traced_steps


def config(**changes: Any) -> Any:
    return CONFIG.model_copy(update=changes)


def test_of_long_runs_and_large_nets_few_steps_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [21, 30, 39, 48, 57, 66, 75, 84, 90]
    kept = traced_steps(config(epochs=30, dtype="float32"))
    assert kept[:50] == list(range(1, 51))
    assert {*kept} >= {*ends}, "the opening steps go first"
    monkeypatch.setattr(trace, "CHEAP", 0)
    steps = [1, 2, 3, 4, 12, *ends]
    assert traced_steps(config(epochs=30)) == steps
    wanted = {0, *steps, *(step - 1 for step in steps)}
    assert [*snapshots(config(epochs=30)), steps[-1]] == sorted(wanted)
    net = {"chapter": "concise", "epochs": None, "steps": 12}
    assert traced_steps(config(**net, options=ConciseOptions(8))) == list(range(1, 13))
    assert traced_steps(config(**net, options=ConciseOptions(32), dtype="float32")) == [1]
    assert traced_steps(config(**net, options=ConciseOptions(64))) == []


class AtStep(chapters.NumpyChapter):
    """Does all right but in one step, of which the losses tell little."""

    def __init__(self, wrong: int) -> None:
        self.steps, self.wrong = 0, wrong

    def sgd(self, device: int, weights: Weights, gradients: Weights, lr: float) -> None:
        self.steps += device == 0
        super().sgd(device, weights, gradients, lr * (1.001 if self.steps == self.wrong else 1))


# The fifth step is the first of the second epoch.
@pytest.mark.parametrize(("wrong", "steps"), [(3, 4), (5, 8)])
def test_a_wrong_step_is_named_and_those_after_it_are_not(
    tmp_path: Path, wrong: int, steps: int
) -> None:
    for framework in ("pytorch", "mxnet"):
        make(tmp_path, framework, chapters.NumpyChapter(), 1, dtype="float32", steps=steps)
    path = make(tmp_path, "jax", AtStep(wrong), 1, dtype="float32", steps=steps)
    verdict = judge(tmp_path, frameworks=("pytorch", "mxnet", "jax"))
    assert {framework for _, framework, _ in failed(verdict)} == {"jax"}
    (check,) = (check for check in verdict.failures if check.check == "steps")
    assert check.step == wrong
    run = recompute(read_run(path))
    assert run is not None
    far = {each.step for each in run.steps["update"] if each.far > (check.tolerance or 0)}
    assert far == {wrong}
