"""Records that cannot be compared are reported."""

from pathlib import Path

import numpy as np
import pytest
from agreement import changed, failed, judge, of_suite, rewrite, trained
from numpy_chapter import NumpyChapter

from common.compare.comparison import compare, verdict_on
from common.compare.runs import RecordedRun
from common.parity import main


@pytest.fixture(scope="module")
def run() -> RecordedRun:
    return trained("jax", NumpyChapter(), 2)


def test_arrays_of_another_shape_or_type_are_named(run: RecordedRun) -> None:
    name = "weights/fc1.weight"
    right = run.arrays[name]
    assert run.wrong_array == ("", "")
    for wrong in (right.T, right.astype("float32")):
        assert changed(run, {name: wrong}).wrong_array[0] == name
    less = {k: v for k, v in run.arrays.items() if k != name}
    assert RecordedRun(run.record, less).wrong_array[0] == name
    assert changed(run, {"weights/fc3.bias": np.zeros(1)}).wrong_array[0] == "weights/fc3.bias"


def test_epochs_and_accuracies_are_those_of_the_run(run: RecordedRun) -> None:
    (epoch,) = run.record.epochs
    for epochs, where in (
        ([], "epochs"),
        ([epoch.model_copy(update={"steps": 1})], "epochs"),
        ([epoch.model_copy(update={"test_accuracy": 0.99})], "test/predictions"),
    ):
        assert changed(run, epochs=epochs).wrong_array[0] == where


def test_nan_that_no_run_has_otherwise_is_seen(run: RecordedRun) -> None:
    odd = changed(run, {"logits/before": np.full((10, 10), np.nan)})
    (result,) = compare([of_suite(odd)], {})
    assert ("forward", "jax", 2) in failed(verdict_on([result]))


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
