"""Each parity check sees the bug that it exists for, and names the framework that has it."""

import json
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy_chapter as chapters
import pytest
from agreement import answer, edit, failed, failures, judge, make, rewrite

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.compare.accuracy import accuracy
from common.compare.checks import NUMERICAL
from common.parity import PAGE_NEEDS, main
from common.records.store import read_record, read_tensors


def test_agreement_passes_every_check_of_every_record(results: Path) -> None:
    verdict = judge(results)
    assert verdict.passed
    checks = [check for comparison in verdict.comparisons for check in comparison.checks]
    ran = {(check.check, check.framework, check.devices) for check in checks}
    every = ("record", "shapes", *NUMERICAL, "steps")
    assert ran == {
        *product(every, FRAMEWORKS, (1, 2, 3)),
        *product(["devices"], FRAMEWORKS, (2, 3)),
    }


@pytest.mark.parametrize(
    ("bug", "devices", "expected"),
    [
        (chapters.SumInsteadOfMean, 1, {"gradient", "trajectory", "weights", "outcome"}),
        (chapters.SharedMemory, 2, {"trajectory", "weights", "outcome", "devices"}),
        (chapters.UnnoticedStaleReplica, 2, {"trajectory", "weights", "outcome", "devices"}),
        (chapters.MeanOfMeans, 3, {"gradient", "trajectory", "weights", "outcome", "devices"}),
        (chapters.DroppedExample, 3, {"gradient", "trajectory", "weights", "outcome", "devices"}),
        (chapters.WrongFlattenOrder, 1, {"forward", "gradient", "trajectory", "weights"}),
    ],
)
def test_a_planted_bug_is_caught_and_its_framework_named(
    results: Path, bug: type[chapters.NumpyChapter], devices: int, expected: set[str]
) -> None:
    make(results / "float64", "jax", bug(), devices)
    found = failed(judge(results))
    assert {name for name, _, _ in found} >= expected
    assert {framework for _, framework, _ in found} == {"jax"}


def test_a_bug_in_float32_is_measured_against_the_float64_answer(results: Path) -> None:
    for framework in FRAMEWORKS:
        make(results / "float32", framework, chapters.NumpyChapter(), 1, dtype="float32")
    good, exact = judge(results), judge(results).comparisons[1].compared_with
    assert good.passed
    assert "float64" in exact
    for framework in FRAMEWORKS:  # all wrong in the same way: a median of these would agree
        bug = chapters.SumInsteadOfMean()
        make(results / "float32", framework, bug, 1, dtype="float32")
    assert {framework for _, framework, _ in failed(judge(results))} == set(FRAMEWORKS)


def test_a_replica_that_was_not_updated_ends_the_run(results: Path) -> None:
    with pytest.raises(RunError, match="on device 1 differs"):
        make(results / "float64", "mxnet", chapters.StaleReplica(), 2)
    assert failed(judge(results)) == {("record", "mxnet", 2)}


def test_a_loss_that_is_nan_ends_the_run(results: Path) -> None:
    with pytest.raises(RunError, match="the loss of step 2 is nan"):
        make(results / "float64", "mxnet", chapters.NotANumber(), 1)
    assert ("record", "mxnet", 1) in failed(judge(results))


@pytest.mark.parametrize(
    ("array", "check", "value"),
    [
        ("logits/before", "forward", 1e-6),
        ("gradients/conv1.bias", "gradient", 1e-6),
        ("gradients/conv1.bias", "gradient", np.nan),
        ("weights/fc2.bias", "weights", 1e-6),
        ("weights/fc2.bias", "weights", np.inf),
        ("logits/after", "outcome", 1e-6),
    ],
)
def test_one_wrong_entry_is_seen(results: Path, array: str, check: str, value: float) -> None:
    path = results / "float64/pytorch-scratch-1dev.json"
    values = read_tensors(path, read_record(path))[array]
    values.flat[-1] += value
    rewrite(path, {array: values})
    found = failed(judge(results))
    assert (check, "pytorch", 1) in found
    # Its other device counts no longer agree with it; no other framework is blamed.
    assert {(name, framework) for name, framework, _ in found} <= {
        (check, "pytorch"),
        ("devices", "pytorch"),
        ("steps", "pytorch"),
    }


def test_every_step_is_compared_not_only_the_last(results: Path) -> None:
    path = results / "float64/jax-scratch-2dev.json"
    losses = json.loads(path.read_text())["losses"]
    edit(path, losses=[losses[0], losses[1] + 1e-8, *losses[2:]])
    verdict = judge(results)
    assert failed(verdict) == {(name, "jax", 2) for name in ("trajectory", "devices", "steps")}
    assert {check.place for check in failures(verdict)} == {"step 2", "step 2, the loss"}


def test_accuracy_has_a_floor_and_a_spread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {"preset": "quick", "epochs": 1, "steps": None, "test_examples": 300}
    for module in ("accuracy", "suite"):
        monkeypatch.setattr(f"common.compare.{module}.preset_of", lambda config: config.preset)
    for framework, devices in product(FRAMEWORKS, (1, 2)):
        make(tmp_path, framework, chapters.NumpyChapter(), devices, **quick)
        answer(tmp_path / f"{framework}-scratch-{devices}dev.json", 0.90)
    assert judge(tmp_path).passed
    answer(tmp_path / "jax-scratch-1dev.json", 0.99)  # their mean is still near enough
    assert judge(tmp_path).passed
    answer(tmp_path / "jax-scratch-2dev.json", 0.92)
    # The others are as far from it as it is from them, but agree with each other.
    assert failed(judge(tmp_path)) == {("spread", "jax", k) for k in (1, 2)}
    found = failed(judge(tmp_path, frameworks=("jax", "mxnet")))
    assert found == {("spread", *run) for run in product(("jax", "mxnet"), (1, 2))}
    answer(tmp_path / "jax-scratch-1dev.json", 0.5)
    assert ("accuracy", "jax", 1) in failed(judge(tmp_path))


def test_the_mean_loss_of_every_epoch_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.compare.suite.preset_of", lambda config: config.preset)
    for framework in ("pytorch", "jax", "mxnet"):
        make(tmp_path, framework, chapters.NumpyChapter(), 1, preset="quick", epochs=6, steps=None)
    path = tmp_path / "jax-scratch-1dev.json"
    losses = json.loads(path.read_text())["losses"]
    edit(path, losses=[*losses[:20], *(2 * loss for loss in losses[20:])])
    verdict = judge(tmp_path, frameworks=("pytorch", "jax", "mxnet"))
    assert failed(verdict) == {("curve", "jax", 1), ("steps", "jax", 1)}
    assert "epoch 6" in {check.where for check in failures(verdict)}


@pytest.mark.parametrize(
    ("decay", "epochs", "expected"),
    [
        ("none", [0.4], 0.4),
        ("none", [0.1, 0.2, 0.3, 0.5], 0.4),
        ("none", [0.1, 0.1, 0.1, 0.1, 0.6, 0.7, 0.8], 0.7),
        ("linear", [0.1, 0.2, 0.6], 0.6),
    ],
)
def test_a_run_ends_with_an_accuracy(decay: str, epochs: list[float], expected: float) -> None:
    figures = [SimpleNamespace(test_accuracy=each) for each in epochs]
    record: Any = SimpleNamespace(config=SimpleNamespace(lr_decay=decay), epochs=figures)
    assert accuracy(record) == pytest.approx(expected)


def test_an_empty_folder_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no records"):
        judge(tmp_path)
    assert main([str(tmp_path)]) == 2
    assert main([str(tmp_path / "nowhere")]) == 2
    assert not (tmp_path / "nowhere").exists()


def test_the_command_prints_a_table_and_writes_all_files(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(results)]) == 0
    printed = capsys.readouterr().out
    assert "every framework computed the same" in printed
    assert json.loads((results / "parity.json").read_text())["passed"] is True
    assert "| gradient of the first step |" in (results / "parity.md").read_text()
    assert (results / "parity.html").exists() == all(map(find_spec, PAGE_NEEDS))
    (results / "float64/mxnet-scratch-3dev.json").unlink()
    assert main([str(results)]) == 1
    assert "FAILED record: mxnet scratch on 3" in capsys.readouterr().out
    assert json.loads((results / "parity.json").read_text())["passed"] is False
    assert "FAILED" in (results / "parity.md").read_text()
