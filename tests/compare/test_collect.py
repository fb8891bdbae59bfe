"""Records that cannot be compared are reported."""

from pathlib import Path

import numpy as np
import pytest
from agreement import failed, judge, rewrite

from common.compare.runs import RecordedRun
from common.pairs.runs import read_run
from common.parity import main


def test_arrays_of_another_shape_or_type_are_named(agreeing: Path) -> None:
    run, name = read_run(agreeing / "jax-scratch-2dev.json"), "weights/fc1.weight"
    right = run.arrays[name]
    assert run.wrong_array == ("", "")
    for wrong in (right.T, right.astype("float32")):
        odd, note = RecordedRun(run.record, {**run.arrays, name: wrong}).wrong_array
        shape = f"{wrong.dtype} {wrong.shape}"
        assert (odd, note) == (name, f"{name} is {shape}, expected float64 (800, 128)")
    less = {k: v for k, v in run.arrays.items() if k != name}
    assert RecordedRun(run.record, less).wrong_array[1].startswith(f"{name} is missing, expected")
    more = {**run.arrays, "weights/fc3.bias": np.zeros(1)}
    assert RecordedRun(run.record, more).wrong_array[1].endswith("(1,), expected missing")


def test_epochs_and_accuracies_are_those_of_the_run(agreeing: Path) -> None:
    run = read_run(agreeing / "jax-scratch-2dev.json")
    (epoch,) = run.record.epochs
    for epochs, why in (
        ([], "epochs have [] steps"),
        ([epoch.model_copy(update={"steps": 1})], "epochs have [1] steps"),
        ([epoch.model_copy(update={"test_accuracy": 0.99})], "epoch 1 has accuracy 0.9900"),
    ):
        record = run.record.model_copy(update={"epochs": epochs})
        assert RecordedRun(record, run.arrays).wrong_array[1].startswith(why)


def test_nan_that_no_run_has_otherwise_is_seen(
    two: Path, monkeypatch: pytest.MonkeyPatch, ours: Path, theirs: Path
) -> None:
    monkeypatch.setattr("common.compare.checks.recompute_all", lambda runs: {})
    for path in (ours, theirs):
        rewrite(path, {"logits/before": np.full((10, 10), np.nan)})
    assert any("NaN or infinity" in check.note for check in judge(two).failures)


def test_a_record_of_no_suite_is_named(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (results / "jax-strategies-tensorx2-4dev.json").write_text("no record")
    assert main([str(results)]) == 0
    told = "not compared, as no suite has them: jax-strategies-tensorx2-4dev.json"
    assert told in capsys.readouterr().out


def test_a_spoiled_run_on_one_device_spoils_no_other(results: Path) -> None:
    path = results / "float64/jax-scratch-1dev.json"
    rewrite(path, {"weights/fc1.weight": np.zeros(3)})
    found = failed(judge(results))
    assert found == {("shapes", "jax", 1), ("devices", "jax", 2), ("devices", "jax", 3)}
