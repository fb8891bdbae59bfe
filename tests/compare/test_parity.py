"""Each parity check sees the bug that it exists for, and names the framework that has it."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy_chapter as chapters
import pytest
from agreement import changed, edit, failed, judge, make, make_runs, of_suite, trained, verdict
from numpy_chapter import NumpyConcise

from common.backends.frameworks import FRAMEWORKS
from common.chapters.suites import Suite
from common.compare.checks import CHECKS
from common.compare.findings import Check, nearest_to_failing
from common.compare.folder import load
from common.compare.peers import LoadedRecord, LoadedSuite, Reference, answer_of
from common.compare.runs import EXAMPLES, NUMERICAL, RecordedRun, final_accuracy
from common.parity import PAGE_NEEDS, main
from common.records.record import Epoch, Record, read_record
from common.settings.arguments import all_settings
from common.settings.config import Config

LATER = {"trajectory", "weights", "outcome"}


def concise(folder: Path, **settings: Any) -> None:
    """Records of a right ResNet-18 in every framework."""
    make_runs(folder, NumpyConcise(), layers=False, **settings)


@pytest.fixture(scope="module")
def agreeing(good: Path) -> list[RecordedRun]:
    """Right runs of LeNet in four frameworks, on 1, 2 and 3 devices."""
    (loaded,) = load(good)
    return loaded.runs


def test_agreement_passes_every_check_of_every_record(agreeing: list[RecordedRun]) -> None:
    found = verdict(*agreeing)
    assert found.passed
    ran = {(check.check, check.framework, check.devices) for check in found.checks}
    every = ("record", "shapes", *NUMERICAL, "steps")
    assert ran == {
        *product(every, FRAMEWORKS, (1, 2, 3)),
        *product(["devices"], FRAMEWORKS, (2, 3)),
    }


@pytest.mark.parametrize(
    ("bug", "devices", "expected"),
    [
        (chapters.SumInsteadOfMean, 1, {"gradient", *LATER}),
        (chapters.SharedMemory, 2, {*LATER, "devices"}),
        (chapters.MeanOfMeans, 3, {"gradient", *LATER, "devices"}),
        (chapters.WrongFlattenOrder, 1, {"forward", "gradient", "trajectory", "weights"}),
        (chapters.WrongMomentum, 1, {"weights", "outcome", "steps"}),
        (chapters.LocalStatistics, 2, {"gradient", "trajectory", "weights", "devices"}),
        (chapters.UnmovedStatistics, 2, {"steps"}),
    ],
)
def test_a_planted_bug_is_caught_and_its_framework_named(
    agreeing: list[RecordedRun], tmp_path: Path, bug: Any, devices: int, expected: set[str]
) -> None:
    if issubclass(bug, NumpyConcise):
        concise(tmp_path)
        make_runs(tmp_path, bug(), "jax", layers=False)
        found = failed(judge(tmp_path))
    else:
        wrong = trained("jax", bug(), devices)
        found = failed(verdict(wrong, *(run for run in agreeing if run.name != wrong.name)))
    assert {name for name, _, _ in found} >= expected
    assert {framework for _, framework, _ in found} == {"jax"}
    assert devices in {k for _, _, k in found}


def test_other_minibatches_than_those_of_most_runs_are_seen() -> None:
    """Also of steps that are not kept."""
    runs = [trained(name, chapters.NumpyChapter(), 1) for name in FRAMEWORKS]
    (epoch,) = runs[0].record.epochs
    other = changed(runs[0], epochs=[epoch.model_copy(update={"minibatches_sha256": "0" * 64})])
    first, *right = of_suite(other, *runs[1:]).found
    assert (first.run, first.trouble) == (None, "minibatches of epoch 1 are not those of others")
    assert [entry.run for entry in right] == runs[1:]
    twice = [epoch, epoch.model_copy(update={"epoch": 2})]
    (found,) = of_suite(changed(runs[0], epochs=twice)).found
    assert found.trouble == "epochs 1 and 2 have the same minibatches in the same order"


def test_a_bug_in_float32_is_measured_against_the_float64_answer(results: Path) -> None:
    chosen = {"frameworks": ("jax", "mxnet")}
    for framework in chosen["frameworks"]:
        make(results / "float32", framework, chapters.NumpyChapter(), 1, dtype="float32")
    judged = judge(results, **chosen)
    assert judged.passed
    assert "float64" in judged.comparisons[1].compared_with
    for framework in chosen["frameworks"]:  # both wrong in the same way: their median would agree
        bug = chapters.SumInsteadOfMean()
        make(results / "float32", framework, bug, 1, dtype="float32")
    found = failed(judge(results, **chosen))
    assert {framework for _, framework, _ in found} == {"jax", "mxnet"}


@pytest.mark.parametrize(
    ("array", "check", "value"),
    [
        ("losses", "trajectory", 1e-8),
        ("logits/before", "forward", 1e-6),
        ("gradients/conv1.bias", "gradient", np.nan),
        ("weights/fc2.bias", "weights", 1e-6),
        ("weights/fc2.bias", "weights", np.inf),
        ("logits/after", "outcome", 1e-6),
    ],
)
def test_one_wrong_entry_is_seen(
    agreeing: list[RecordedRun], array: str, check: str, value: float
) -> None:
    run, *others = agreeing
    values = run.arrays[array].copy()
    values.flat[-1] += value
    wrong = changed(run, {array: values}, **({"losses": [*values]} if array == "losses" else {}))
    found = failed(verdict(wrong, *others))
    assert (check, "pytorch", 1) in found
    # Its other device counts no longer agree with it; no other framework is blamed.
    assert {(name, framework) for name, framework, _ in found} <= {
        (check, "pytorch"),
        ("devices", "pytorch"),
        ("steps", "pytorch"),
    }


@pytest.mark.parametrize(("dtype", "beginning"), [("float64", 2), ("float32", 1)])
def test_runs_are_compared_with_each_other_in_their_beginnings(
    tmp_path: Path, dtype: str, beginning: int
) -> None:
    concise(tmp_path, dtype=dtype, steps=beginning + 1)
    judged = judge(tmp_path)
    assert judged.passed
    (comparison,) = judged.comparisons
    checks = {check.check for check in comparison.checks}
    assert checks == {"record", "shapes", "forward", "gradient", "trajectory", "steps", "devices"}
    record = tmp_path / f"{dtype}-sync" / "jax-concise-2dev.json"
    right = read_record(record).losses
    for step, seen in (
        (beginning, {"trajectory", "devices", "steps"}),
        (beginning + 1, {"steps"}),
    ):
        edit(
            record, losses=[loss * (1.0001 if n == step else 1) for n, loss in enumerate(right, 1)]
        )
        assert failed(judge(tmp_path)) == {(check, "jax", 2) for check in seen}


def of_preset(framework: str, devices: int, *epochs: float, losses: Any = ()) -> RecordedRun:
    """A run of the quick preset that was not trained: it has accuracies, and losses."""
    settings = all_settings(framework, "scratch", {"preset": "quick"})
    config = Config.of(settings, devices, "cpu").on_data("synthetic", *EXAMPLES["synthetic"])
    steps = len(losses) // len(epochs)
    figures = [
        Epoch(epoch=n, steps=steps or 1, test_accuracy=share, seconds=1, images_per_second=1)
        for n, share in enumerate(epochs, 1)
    ]
    names: Any = {"framework": framework, "chapter": "scratch", "config": config, "epochs": figures}
    record = Record.model_construct(**names, data_sha256="", initial_weights_sha256="")
    return RecordedRun(record.model_copy(update={"losses": [*losses]}), {"losses": losses})


def found(check: str, *runs: RecordedRun, expected: Any = None) -> dict[str, Check]:
    """What a check finds of runs, by framework and devices."""
    reference = Reference("", {"losses": expected}, [])
    every = {answer_of(run): reference for run in runs}
    entries = [LoadedRecord(run.record.framework, run.devices, run) for run in runs]
    suite = Suite("scratch", "quick", ".", (), (), {})
    peers = LoadedSuite(suite, entries, references=every)
    checks = {f"{x.record.framework} {x.devices}": CHECKS[check](x, peers) for x in runs}
    return {name: check for name, check in checks.items() if check}


def test_accuracy_has_a_floor_and_a_spread() -> None:
    def red(*shares: float, frameworks: Sequence[str] = FRAMEWORKS) -> set[str]:
        runs = [of_preset(name, k, 0.9) for name, k in product(frameworks, (1, 2))]
        ours = zip((1, 2), shares, strict=True)
        runs = [run for run in runs if run.record.framework != "jax"]
        runs += [of_preset("jax", k, share) for k, share in ours]
        checks = found("spread", *runs)
        assert len(checks) == len(runs)
        return {name for name, check in checks.items() if not check.passed}

    assert red(0.9, 0.9) == set()
    assert red(0.99, 0.9) == set()  # their mean is still near enough
    # The others are as far from it as it is from them, but agree with each other.
    assert red(0.99, 0.92) == {"jax 1", "jax 2"}
    both = {f"{name} {k}" for name, k in product(("jax", "mxnet"), (1, 2))}
    assert red(0.99, 0.92, frameworks=("jax", "mxnet")) == both
    low = found("accuracy", of_preset("jax", 1, 0.5), of_preset("jax", 2, 0.92))
    assert [(x.passed, x.distance) for x in low.values()] == [(False, 0.5), (True, 0.92)]
    assert nearest_to_failing(low.values()).distance == 0.5


def test_the_mean_loss_of_every_epoch_is_compared() -> None:
    right = np.linspace(2, 1, 24)
    wrong = np.where(np.arange(24) < 20, right, 2 * right)
    for losses, passed, where in ((wrong, False, "epoch 6"), (right, True, "epoch 1")):
        run = of_preset("jax", 1, *[0.9] * 6, losses=losses)
        (check,) = found("curve", run, expected=right).values()
        assert (check.passed, check.where) == (passed, where)


def test_a_floor_holds_for_its_whole_preset_and_for_nothing_else() -> None:
    run = of_preset("jax", 1, 0.1, losses=np.ones(24))
    config = run.record.config.model_copy(update={"lr": 0.5})
    other = changed(run, config=config)
    for check in ("accuracy", "spread", "curve"):
        assert not found(check, other, other, expected=np.ones(24))
    assert found("accuracy", run)["jax 1"].passed is False


def test_a_run_ends_with_an_accuracy() -> None:
    for decay, epochs, expected in (
        ("none", [0.4], 0.4),
        ("none", [0.1, 0.2, 0.3, 0.5], 0.4),
        ("none", [0.1, 0.1, 0.1, 0.1, 0.6, 0.7, 0.8], 0.7),
        ("linear", [0.1, 0.2, 0.6], 0.6),
    ):
        figures = [SimpleNamespace(test_accuracy=each) for each in epochs]
        record: Any = SimpleNamespace(config=SimpleNamespace(lr_decay=decay), epochs=figures)
        assert final_accuracy(record) == pytest.approx(expected)


def test_the_command_prints_a_table_and_writes_files_that_outlive_no_error(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(results)]) == 0
    printed = capsys.readouterr().out
    assert "every framework computed the same" in printed
    assert "│" in printed
    assert main([str(results), "--brief"]) == 0
    assert "│" not in capsys.readouterr().out
    assert json.loads((results / "parity.json").read_text())["passed"] is True
    assert (results / "parity.html").exists() == bool(find_spec(PAGE_NEEDS))
    (results / "float64/mxnet-scratch-3dev.json").unlink()
    assert main([str(results)]) == 1
    assert "FAILED record: mxnet scratch on 3" in capsys.readouterr().out
    assert json.loads((results / "parity.json").read_text())["passed"] is False
    for path in (results / "float64").iterdir():
        path.unlink()
    for folder in (results, results / "nowhere"):
        assert main([str(folder)]) == 2
    assert "error: there are no records in " in capsys.readouterr().err
    assert not any(path.name.startswith(("parity", "nowhere")) for path in results.iterdir())
