"""The trace of a run, and the wrong steps that it shows."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy_chapter as chapters
import pytest
from agreement import failed, judge, make
from fake_chapter import CONFIG

from common.base.arrays import Array, Weights
from common.chapters.concise import ConciseOptions
from common.compare import numpy_nets
from common.compare.recorded_steps import recompute
from common.pairs.runs import read_run
from common.records.trace import snapshots, traced_steps


def config(**changes: Any) -> Any:
    return CONFIG.model_copy(update=changes)


def test_of_long_runs_and_large_nets_few_steps_are_kept() -> None:
    assert traced_steps(config(epochs=None, steps=20)) == list(range(1, 21))
    steps = [1, 2, 3, 4, 12, 21, 30, 39, 48, 57, 66, 75, 84, 90]
    assert traced_steps(config(epochs=30)) == steps
    wanted = {0, *steps, *(step - 1 for step in steps)}
    assert [*snapshots(config(epochs=30)), steps[-1]] == sorted(wanted)
    net = {"chapter": "concise", "epochs": None, "steps": 12}
    assert traced_steps(config(**net, options=ConciseOptions(8))) == list(range(1, 13))
    few = traced_steps(config(**net, options=ConciseOptions(16), dtype="float32", batch_size=256))
    assert few[-1] == 12
    assert 1 < len(few) < 12
    assert traced_steps(config(**net, options=ConciseOptions(32), dtype="float32")) == [1]
    assert traced_steps(config(**net, options=ConciseOptions(64))) == []


class AtStep(chapters.NumpyChapter):
    """Does all right but in one step, of which the losses tell little."""

    def __init__(self, wrong: int) -> None:
        self.steps, self.wrong = 0, wrong

    def sgd(self, device: int, weights: Weights, gradients: Weights, lr: float) -> None:
        self.steps += device == 0
        super().sgd(device, weights, gradients, lr * (1.001 if self.steps == self.wrong else 1))


# Of 24 steps, the fifth is the first of the second epoch.
@pytest.mark.parametrize(("wrong", "steps"), [(3, 4), (5, 24)])
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


class Flips(chapters.NumpyChapter):
    """Decides one ReLU unit otherwise, in every step."""

    near = True

    def step(self, X: Array, y: Array) -> numpy_nets.Step:
        found = super().step(X, y)
        net = numpy_nets.LeNet(numpy_nets.doubled(self.replicas[0]))
        _, d = numpy_nets.cross_entropy(net.forward(X.astype(np.float64)), y)
        net.backward(d)
        right, net.gradients = net.gradients, {}
        inputs = np.abs(net.relu_inputs[2])
        index = np.unravel_index(int((inputs if self.near else -inputs).argmin()), inputs.shape)
        net.flipped = {(2, tuple(map(int, index)))}
        net.backward(d)
        for name, gradient in found.gradients.items():
            gradient += (net.gradients[name] - right[name]).astype(X.dtype)
        return found


class Wrong(Flips):
    """The same, with a unit that is in no doubt at all."""

    near = False


@pytest.mark.parametrize(("chapter", "most"), [(Flips(), 300), (Wrong(), 8)])
def test_a_unit_that_is_in_doubt_may_flip_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chapter: Flips, most: int
) -> None:
    monkeypatch.setattr(numpy_nets, "DOUBT", 300)
    monkeypatch.setattr(numpy_nets, "MOST_UNITS", most)
    settings = {"dtype": "float32", "steps": 1, "batch_size": 4}
    again = recompute(read_run(make(tmp_path, "jax", chapter, 1, **settings)))
    assert again is not None
    far = max(each.far for each in again.steps["update"])
    if chapter.near:
        assert (far < 1e-6, again.flipped) == (True, 1)
    else:
        assert far > 5e-3
