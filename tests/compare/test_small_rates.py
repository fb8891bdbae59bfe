"""Steps at small rates, of which rounding hides most, and gradients that nearly cancel."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy_chapter as chapters
import pytest
from agreement import ROUNDED, SETTINGS, failed, judge, make, nowhere_zero, rewrite, trained
from numpy_chapter import Flips, NumpyConcise, WrongMomentum

from common.base.arrays import Array, Weights
from common.chapters.suites import Suite
from common.compare import numpy_nets
from common.compare.findings import Verdict
from common.compare.numpy_pass import SUMS
from common.compare.recorded_steps import recompute
from common.compare.runs import RecordedRun
from common.pairs.runs import read_run


def test_a_unit_in_doubt_is_found_at_any_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_nets, "DOUBT", 300)  # of so few units, hardly any is in doubt
    run = read_run(make(tmp_path, "jax", Flips(), 1, **ROUNDED, lr=1e-30))
    assert not red(run)
    again = recompute(run)
    assert again is not None
    assert {each.step for each in again.steps["update"]} == {1, 2}
    assert any(values.any() for values in again.gained.values())
    monkeypatch.undo()  # with the real bound, the unit is in no doubt
    assert red(run)


def red(run: RecordedRun) -> bool:
    """Whether some step is farther off than is allowed."""
    again, most = recompute(run), run.limits
    assert again is not None
    return any(each.far > most[kind] for kind in again.steps for each in again.steps[kind])


@dataclass
class Off(NumpyConcise):
    """Moves one weight, or all, by something else than their gradients."""

    part: str
    factor: float

    def gradients(self, X: Array, y: Array) -> Weights:
        return super().step(X, y).gradients

    def step(self, X: Array, y: Array) -> numpy_nets.Step:
        found = super().step(X, y)
        off = {k: self.factor * grad for k, grad in found.gradients.items() if self.part in k}
        return replace(found, gradients={**found.gradients, **off})


@pytest.mark.parametrize(
    ("chapter", "lr", "seen"),
    [
        (Off("", 5), 0.1, True),
        (Off("", 5), 1e-12, True),
        (WrongMomentum(), 1e-12, True),
        (Off("stage2.block1.conv1.weight", 1.01), 1e-6, True),
        (Off("stage2.block1.conv1.weight", 1.01), 1e-12, False),
        # Biases start at 0, where a small step is not rounded away.
        (Off("stage2.block1.bn1.bias", 1.01), 1e-12, True),
    ],
)
def test_a_wrong_step_is_red_where_it_stands_above_rounding(
    tmp_path: Path, chapter: NumpyConcise, lr: float, seen: bool
) -> None:
    assert red(read_run(make(tmp_path, "jax", chapter, 1, **ROUNDED, lr=lr))) == seen


SMALL: dict[str, Any] = {"dtype": "float32", "steps": 2}


def judged(folder: Path, lr: float, chapter: chapters.NumpyChapter) -> Verdict:
    for framework in ("jax", "mxnet"):
        made = chapter if framework == "jax" else chapters.NumpyChapter()
        make(folder, framework, made, 1, start=nowhere_zero, **SMALL, lr=lr)
    return judge(folder, frameworks=("jax", "mxnet"))


class Slips(chapters.NumpyChapter):
    """Moves one weight by itself."""

    def sgd(self, device: int, weights: Weights, gradients: Weights, lr: float) -> None:
        weights["fc1.weight"][3, 4] += np.float32(1e-5)


def test_a_step_of_which_all_is_hidden_is_not_compared_and_said_so(
    tmp_path: Path,
) -> None:
    verdict = judged(tmp_path, 1e-20, chapters.NumpyChapter())
    assert verdict.passed
    steps = [each for each in verdict.comparisons[0].checks if each.check == "steps"]
    assert {each.quantity for each in steps} <= {"loss", "logits"}
    assert {(each.hidden, each.steps) for each in steps} == {(2, 2)}
    # A suite has no such step.
    names = "batch_size", "seed", "train_examples", "test_examples", "init_weights"
    settings = {**SMALL, "lr": 1e-20, **{name: SETTINGS[name] for name in names}}
    suite = Suite("scratch", "float32", ".", (1,), (), settings)
    assert failed(judge(tmp_path, frameworks=("jax", "mxnet"), known=[suite])) == {
        ("steps", name, 1) for name in ("jax", "mxnet")
    }
    # At this rate rounding hides one tensor wholly, of others not all.
    for rate, lost in ((1e-8, 2), (1e-5, 0)):
        run = trained("jax", chapters.NumpyChapter(), 1, start=nowhere_zero, **SMALL, lr=rate)
        again = recompute(run)
        assert again
        assert (len(again.hidden), len(again.steps["update"])) == (lost, 16)
    # What sticks out of rounding is red, though it hides all else.
    assert ("steps", "jax", 1) in failed(judged(tmp_path, 1e-20, Slips()))


def test_a_ten_thousandth_of_what_was_added_up_is_seen(tmp_path: Path) -> None:
    frameworks = ("mxnet", "jax")
    for framework in frameworks:
        path = make(tmp_path, framework, NumpyConcise(), 1, **ROUNDED)
    run, gradient = read_run(path), "gradients/stage2.block1.bn1.weight"
    replayed = recompute(run)
    assert replayed
    added_up = replayed.scales[gradient] / SUMS
    rewrite(path, {gradient: run.arrays[gradient] + 1e-6 * added_up})
    assert judge(tmp_path, frameworks=frameworks).passed
    rewrite(path, {gradient: run.arrays[gradient] + 1e-4 * added_up})
    assert failed(judge(tmp_path, frameworks=frameworks)) == {("gradient", "jax", 1)}
