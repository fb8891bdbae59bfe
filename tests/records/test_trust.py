"""A stale, partial, edited, mixed or foreign record is refused with the reason."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.base.errors import RunError
from common.compare.checks import Run
from common.pairs.runs import read_run
from common.records.new import failure_of
from common.records.record import Record
from common.records.store import read_record, read_tensors, seal, write_record
from common.records.trust import contradiction, distrust

HERE = {"host": "a", "devices": 1, "peak_memory": 9, "waited": 0.5}
HOSTS = {
    "launcher": "by hand",
    "engine": "Gloo",
    "transport": "TCP",
    "processes": [HERE, {**HERE, "host": "b"}],
}
DATA = {"name": "fashion-mnist", "train_examples": 40, "test_examples": 10, "sha256": "0" * 64}
FAILURE = failure_of(OSError("worse\nmore of it")).model_dump()


@pytest.fixture(scope="module")
def run(agreeing: Path) -> Run:
    """A run of four steps on two devices."""
    return read_run(agreeing / "jax-scratch-2dev.json")


def changed(record: Record, **changes: Any) -> Record:
    """The record with other fields, or settings in "config", sealed again."""
    content = record.model_dump(by_alias=True)
    config = content["config"] | changes.pop("config", {})
    other = Record.model_validate(content | changes | {"config": config})
    return other.model_copy(update={"sha256": seal(other)})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"status": "running"}, "running, not complete"),
        ({"status": "failed", "failure": FAILURE}, "failed: OSError: worse"),
        ({"framework": "pytorch"}, "comes from pytorch scratch, its configuration from another"),
        ({"devices": ["cpu:0"]}, "ran on 1 devices, and 2 were asked for"),
        ({"devices": ["cpu:0", "cuda:1"]}, "of the kind cpu, and names cpu:0, cuda:1"),
        ({"losses": [1.0] * 3}, "has 3 of 4 losses and 1 of 1 epochs"),
        ({"epochs": []}, "has 4 of 4 losses and 0 of 1 epochs"),
        ({"data": DATA}, "40 images of fashion-mnist"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(
    run: Run, changes: dict[str, Any], why: str
) -> None:
    assert distrust(run.record) == ""
    assert why in distrust(changed(run.record, **changes))


def test_a_record_that_was_changed_later_is_refused(run: Run) -> None:
    other = run.record.model_copy(update={"peak_memory": 1})
    assert distrust(other) == "was changed after it was written"
    names = ["n1-highgpu cpu:0", "b cpu:0"]  # whatever the hosts are called
    assert distrust(changed(run.record, cluster=HOSTS, devices=names)) == ""


def test_tensors_that_deny_the_record_are_named(run: Run) -> None:
    record, arrays = run.record, run.arrays
    assert contradiction(record, arrays) == ""
    other = changed(record, initial_weights_sha256="0" * 64)
    assert "other weights than its initial ones" in contradiction(other, arrays)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"schema": 6', '"schema": 5', "schema"),
        ('"devices": [', '"cores": 2, "devices": [', "cores"),
        ('"cluster": null', f'"cluster": {json.dumps({**HOSTS, "processes": [HERE]})}', "cluster"),
        ('"epochs": null', '"epochs": 1', "config .*exactly one of epochs and steps"),
        ("{", "", "JSON"),
    ],
)
def test_a_record_of_another_form_is_refused(
    agreeing: Path, tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    text, path = (agreeing / "jax-scratch-2dev.json").read_text(), tmp_path / "run.json"
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(RunError, match=f"{path} is not a record of schema 6: .*{complaint}"):
        read_record(path)


def cut(beside: Path) -> None:
    beside.write_bytes(beside.read_bytes()[:-1])


def elsewhere(beside: Path) -> None:
    """The record names a file of another folder."""
    beside.rename(beside.parent.parent / "elsewhere")
    record = beside.with_suffix(".json")
    record.write_text(record.read_text().replace(beside.name, "../elsewhere"))


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (cut, "is not the file that .* describes"),
        (Path.unlink, "cannot be read"),
        (elsewhere, "elsewhere cannot be read"),
    ],
)
def test_tensors_that_are_not_the_runs_own_are_refused(
    run: Run, tmp_path: Path, spoil: Callable[[Path], object], complaint: str
) -> None:
    (tmp_path / "results").mkdir()
    path = write_record(tmp_path / "results", run.record, {"w": np.ones(2)})
    assert read_tensors(path, read_record(path)).keys() == {"w"}
    spoil(path.with_suffix(".safetensors"))
    with pytest.raises(RunError, match=complaint):
        read_tensors(path, read_record(path))
