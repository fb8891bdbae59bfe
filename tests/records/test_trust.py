"""A record that contradicts itself or its tensors, or is none, is refused with the reason."""

import json
import os
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from common.base.errors import RunError
from common.compare.checks import Run
from common.pairs.runs import read_run
from common.records.new import failure_of
from common.records.record import Failure, Record
from common.records.store import read_record, read_tensors, seal, write_record
from common.records.trust import contradiction, distrust, inconsistencies

EPOCH = {"epoch": 1, "steps": 4, "test_accuracy": 0.1, "seconds": 4.0, "images_per_second": 10.0}
HERE = {"host": "a", "devices": 1, "peak_memory": 9, "waited": 0.5}
HOSTS = {
    "launcher": "by hand",
    "engine": "Gloo",
    "transport": "TCP",
    "processes": [HERE, {**HERE, "host": "b"}],
}
DATA = {"name": "synthetic", "train_examples": 40, "test_examples": 10, "sha256": "0" * 64}


@pytest.fixture(scope="module")
def run(agreeing: Path) -> Run:
    """A run of four steps on two devices."""
    return read_run(agreeing / "jax-scratch-2dev.json")


def changed(record: Record, config: dict[str, Any], **changes: Any) -> Record:
    """The record with other settings and fields, sealed again."""
    content = record.model_dump(by_alias=True) | changes
    content["config"] |= config
    other = Record.model_validate(content)
    return other.model_copy(update={"sha256": seal(other)})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"status": "running"}, "running, not complete"),
        ({"framework": "pytorch"}, "comes from pytorch scratch, its configuration from another"),
        ({"devices": []}, "ran on 0 devices, and 2 were asked for"),
        ({"devices": ["cpu:0", "cpu:0"]}, "names a device twice"),
        ({"devices": ["cpu:0", "cuda:1"]}, "of the kind cpu, and names cpu:0, cuda:1"),
        ({"losses": [1.0] * 3}, "has 3 of 4 losses and 1 of 1 epochs"),
        ({"epochs": []}, "has 4 of 4 losses and 0 of 1 epochs"),
        ({"epochs": [{**EPOCH, "epoch": 77}]}, "epoch 1 is called 77"),
        ({"epochs": [{**EPOCH, "steps": 999}]}, "with 999 steps of 4"),
        ({"epochs": [{**EPOCH, "seconds": 1.0}]}, "the speed of epoch 1"),
        ({"data": {**DATA, "name": "fashion-mnist"}}, "40 images of fashion-mnist"),
        ({"data": {**DATA, "train_examples": 41}}, "41 images of synthetic"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(
    run: Run, changes: dict[str, Any], why: str
) -> None:
    assert distrust(run.record) == ""
    assert why in distrust(changed(run.record, {}, **changes))


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"device_kind": "gpu"}, "of the kind gpu, and names"),
        ({"options": {"allreduce": "native"}}, "its traffic is not that of its allreduce"),
        ({"preset": "best"}, "its preset is best"),
    ],
)
def test_a_configuration_that_no_command_asks_for_is_refused(
    run: Run, config: dict[str, Any], why: str
) -> None:
    assert why in distrust(changed(run.record, config))


@pytest.mark.parametrize(("wrapper", "there"), [("sharding", True), ("ddp", False)])
def test_a_wrapper_is_one_of_its_framework(run: Run, wrapper: str, there: bool) -> None:
    config = {"chapter": "concise", "options": {"width": 4, "wrapper": wrapper}}
    found = [*inconsistencies(changed(run.record, config, chapter="concise"))]
    assert (f"its wrapper is {wrapper}, which jax does not have" in found) != there


def test_a_width_above_all_limits_is_refused_in_a_short_line(run: Run) -> None:
    config = {"chapter": "concise", "options": {"width": 5000, "wrapper": "sharding"}}
    with pytest.raises(ValidationError, match="less than or equal to 1024"):
        changed(run.record, config, chapter="concise")


def test_a_record_that_was_changed_later_is_refused(run: Run) -> None:
    other = run.record.model_copy(update={"peak_memory": 1})
    assert distrust(other) == "was changed after it was written"


def test_devices_are_of_a_host_and_of_a_kind_whatever_the_host_is_called(run: Run) -> None:
    over = changed(run.record, {}, cluster=HOSTS, devices=["a cpu:0", "b cpu:0"])
    assert distrust(over) == ""
    names = ["highcpu-1 cuda:0", "highcpu-2 gpu(0)"]
    found = inconsistencies(changed(run.record, {"device_kind": "gpu"}, devices=names))
    assert not any("of the kind" in each for each in found)


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (failure_of(RunError("b on device 1 differs")), "failed: b on device 1 differs"),
        (failure_of(OSError("worse\nmore of it")), "failed: OSError: worse"),
        (None, "does not say why"),
    ],
)
def test_why_a_run_failed_is_told(run: Run, failure: Failure | None, why: str) -> None:
    told = failure and failure.model_dump()
    assert distrust(changed(run.record, {}, status="failed", failure=told)).endswith(why)


@contextmanager
def little_memory() -> Iterator[None]:
    """Fails if more than 4 MiB are taken meanwhile."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("config", "changes", "why"),
    [
        ({"steps": None, "epochs": 10**7}, {}, "has 4 of 40000000 losses and 1 of 10000000 epochs"),
        ({"steps": None, "epochs": 10**7}, {"losses": [], "epochs": []}, "has 0 of 40000000"),
    ],
)
def test_what_a_record_only_asks_for_takes_no_memory(
    run: Run, config: dict[str, Any], changes: dict[str, Any], why: str
) -> None:
    other = changed(run.record, config, **changes)
    with little_memory():
        assert why in distrust(other)


def test_tensors_that_deny_the_record_are_named(run: Run) -> None:
    record, arrays = run.record, run.arrays
    assert contradiction(record, arrays) == ""
    other = changed(record, {}, initial_weights_sha256="0" * 64)
    assert "other weights than its initial ones" in contradiction(other, arrays)
    other = changed(record, {}, epochs=[{**EPOCH, "test_accuracy": 1.0}])
    assert "its test accuracy of epoch 1 is 1, and 0" in contradiction(other, arrays)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"schema": 6', '"schema": 5', "schema"),
        ('"status": "complete"', '"status": "fine"', "status"),
        ('"losses": [', '"losses": [NaN, ', "losses"),
        ('"devices": [', '"cores": 2, "devices": [', "cores"),
        ('"started"', '"begun"', "started"),
        ('"cluster": null', f'"cluster": {json.dumps({**HOSTS, "processes": [HERE]})}', "cluster"),
        ('"batch_size": 10', '"batch_size": 0', "config.batch_size"),
        ('"devices": 2', '"devices": 65', "config.devices"),
        ('"train_examples": 40', f'"train_examples": {10**400}', "config.train_examples"),
        ('"epochs": null', '"epochs": 1', "config .*exactly one of epochs and steps"),
        ('"seed": 0', f'"seed": {2**32}', "config.seed"),
        ('"options": {', '"options": {"width": 4, ', "config.options"),
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
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RunError, match=f"{path} cannot be read"):
        read_record(path)


def cut(beside: Path) -> None:
    beside.write_bytes(beside.read_bytes()[:-1])


def piped(beside: Path) -> None:
    beside.unlink()
    os.mkfifo(beside)


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
        (piped, "it is a pipe or a device, not a file"),
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


def test_tensors_without_a_name_or_with_one_that_no_file_can_have_are_refused(
    run: Run, tmp_path: Path
) -> None:
    for named, why in (
        (None, "names no tensors"),
        ({"file": "a\0b", "sha256": ""}, "cannot be read: embedded null byte"),
        ({"file": "..", "sha256": ""}, "cannot be read"),
    ):
        with pytest.raises(RunError, match=why):
            read_tensors(tmp_path / "run.json", changed(run.record, {}, tensors=named))
