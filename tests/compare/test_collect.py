"""Records that are missing, stale, spoiled or of another setting are not compared but reported."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import edit, failed, judge, make, rewrite
from numpy_chapter import NumpyChapter

from common.compare.checks import Run, check_shapes
from common.compare.collect import LoadedRecord, gather
from common.pairs.runs import read_run
from common.records.store import read_record, read_tensors, unfinished, write_record


def found(folder: Path) -> LoadedRecord:
    """What is found of JAX's run, beside PyTorch's."""
    *_, each = gather(folder, "scratch", "", ["pytorch", "jax"], [1, 2], lambda config: {})
    assert (each.run is None) == bool(each.trouble)
    return each


def test_a_missing_record_is_a_failure(results: Path) -> None:
    (results / "float64/mxnet-scratch-3dev.json").unlink()
    assert failed(judge(results)) == {("record", "mxnet", 3)}
    for path in (results / "float64").glob("jax-*"):
        path.unlink()
    assert {f for _, f, _ in failed(judge(results))} == {"mxnet", "jax"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"source_sha256": "0" * 64}, "stale, as the code has changed since: run it again"),
        ({"framework": "pytorch"}, "it is the record of pytorch-scratch-2dev"),
        ({"schema": 5}, "is not a record of schema 6"),
        ({"losses": []}, "has 0 of 4 losses"),
        ({"initial_weights_sha256": "0" * 64}, "other weights than its initial ones"),
        ({"tensors": None}, "names no tensors"),
    ],
)
def test_a_record_that_cannot_be_trusted_is_refused(
    two: Path, theirs: Path, changes: dict[str, Any], why: str
) -> None:
    assert found(two).run
    edit(theirs, **changes)
    assert why in found(two).trouble
    assert str(theirs) in found(two).trouble


def test_what_became_of_a_later_run_is_said(two: Path, theirs: Path) -> None:
    changes = {"status": "interrupted", "started": "2001-01-01T00:00:00+00:00", "tensors": None}
    write_record(two, read_record(theirs).model_copy(update=changes))
    note = f"a later run of it was interrupted: run it again, or remove {unfinished(theirs)}"
    assert found(two).trouble == note


def other_minibatch(path: Path) -> None:
    labels = read_tensors(path, read_record(path))["trace/labels/2"]
    rewrite(path, {"trace/labels/2": np.roll(labels, 1)})


def other_data(path: Path) -> None:
    edit(path, data=json.loads(path.read_text())["data"] | {"sha256": "0" * 64})


def other_rate(path: Path) -> None:
    make(path.parent, "jax", NumpyChapter(), 2, lr=0.06)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (other_minibatch, "minibatches is "),
        (other_data, "data is 0000"),
        (other_rate, "lr is 0.06, and others have 0.05"),
    ],
)
def test_a_run_of_another_setting_is_refused(
    two: Path, theirs: Path, change: Callable[[Path], None], why: str
) -> None:
    change(theirs)
    assert found(two).trouble.startswith(why)


def test_nan_in_every_record_does_not_pass(two: Path, ours: Path, theirs: Path) -> None:
    for path in (ours, theirs):
        rewrite(path, {"gradients/fc1.bias": np.full(128, np.nan)})
    found = failed(judge(two, frameworks=("pytorch", "jax")))
    assert {("gradient", "pytorch", 1), ("gradient", "jax", 2)} <= found


def test_arrays_of_another_shape_or_type_are_named(agreeing: Path) -> None:
    run, name = read_run(agreeing / "jax-scratch-2dev.json"), "weights/fc1.weight"
    right = run.arrays[name]
    assert check_shapes(run) == ("", "")
    for wrong in (right.T, right.astype("float32")):
        odd, note = check_shapes(Run(run.record, {**run.arrays, name: wrong}))
        shape = f"{wrong.dtype} {wrong.shape}"
        assert (odd, note) == (name, f"{name} is {shape}, expected float64 (800, 128)")
    less = {k: v for k, v in run.arrays.items() if k != name}
    assert check_shapes(Run(run.record, less))[1].startswith(f"{name} is missing, expected")
    more = {**run.arrays, "weights/fc3.bias": np.zeros(1)}
    assert check_shapes(Run(run.record, more))[1].endswith("(1,), expected missing")


def test_a_spoiled_run_on_one_device_spoils_no_other(results: Path) -> None:
    path = results / "float64/jax-scratch-1dev.json"
    rewrite(path, {"weights/fc1.weight": np.zeros(3)})
    found = failed(judge(results))
    assert found == {("shapes", "jax", 1), ("devices", "jax", 2), ("devices", "jax", 3)}
