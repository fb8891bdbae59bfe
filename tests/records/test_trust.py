"""Records that are missing, stale, spoiled or of another setting are not compared but reported."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy_chapter as chapters
import pytest
from agreement import edit, failed, failures, make, rewrite

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.compare.folder import judge
from common.records.new import failure_of
from common.records.record import Failure


def test_a_missing_record_is_a_failure(results: Path) -> None:
    (results / "float64/mxnet-scratch-3dev.json").unlink()
    assert failed(judge(results)) == {("record", "mxnet", 3)}
    for path in (results / "float64").glob("jax-*"):
        path.unlink()
    assert {f for _, f, _ in failed(judge(results))} == {"mxnet", "jax"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"source_sha256": "0" * 64}, "stale"),
        ({"status": "running"}, "running, not complete"),
        ({"schema": 0}, "not a record of schema 6"),
        ({"framework": "pytorch"}, "is of pytorch"),
        ({"devices": ["cpu"]}, "ran on 1 devices"),
        ({"initial_weights_sha256": "0" * 64}, "other weights than its initial ones"),
        ({"losses": [float("nan")]}, "not a record"),
        ({"epochs": []}, "0 epochs, of 1"),
    ],
)
def test_a_record_that_cannot_be_trusted_is_refused(
    results: Path, changes: dict[str, Any], why: str
) -> None:
    edit(results / "float64/jax-scratch-2dev.json", **changes)
    verdict = judge(results)
    assert failed(verdict) == {("record", "jax", 2)}
    assert why in failures(verdict)[0].note


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_size": 0},
        {"width": -1},
        {"train_examples": 10**400},
        {"epochs": 1},
        {"steps": None},
        {"seed": 2**32},
    ],
)
def test_a_configuration_that_no_run_can_have_is_refused(
    results: Path, changes: dict[str, Any]
) -> None:
    path = results / "float64/jax-scratch-2dev.json"
    edit(path, config=json.loads(path.read_text())["config"] | changes)
    verdict = judge(results)
    assert failed(verdict) == {("record", "jax", 2)}
    assert "config" in failures(verdict)[0].note


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (failure_of(RunError("b on device 1 differs")), "failed: b on device 1 differs ("),
        (failure_of(OSError("worse\nmore of it")), "failed: OSError: worse ("),
        (None, "does not say why"),
    ],
)
def test_why_a_run_failed_is_told(results: Path, failure: Failure | None, why: str) -> None:
    edit(
        results / "float64/jax-scratch-2dev.json",
        status="failed",
        failure=failure and failure.model_dump(),
    )
    assert why in failures(judge(results))[0].note


def test_an_array_that_is_no_number_anywhere_does_not_pass(results: Path) -> None:
    for path in (results / "float64").glob("*.json"):
        rewrite(path, {"gradients/fc1.bias": np.full(128, np.nan)})
    found = failed(judge(results))
    assert {("gradient", framework, 1) for framework in FRAMEWORKS} <= found


def test_integers_are_no_weights(results: Path) -> None:
    path = results / "float64/jax-scratch-1dev.json"
    rewrite(path, {"weights/fc2.bias": np.zeros(10, np.int64)})
    assert ("shapes", "jax", 1) in failed(judge(results))


def test_a_spoiled_run_on_one_device_spoils_no_other(results: Path) -> None:
    path = results / "float64/jax-scratch-1dev.json"
    rewrite(path, {"weights/fc1.weight": np.zeros(3)})
    found = failed(judge(results))
    assert found == {("shapes", "jax", 1), ("devices", "jax", 2), ("devices", "jax", 3)}


def test_another_configuration_is_refused(results: Path) -> None:
    make(results / "float64", "mxnet", chapters.NumpyChapter(), 1, lr=0.06)
    verdict = judge(results)
    assert ("record", "mxnet", 1) in failed(verdict)
    assert "lr is 0.06, and others have 0.05" in failures(verdict)[0].note


def test_tensors_that_the_record_does_not_vouch_for_are_refused(results: Path) -> None:
    other = results / "float64/jax-scratch-1dev.safetensors"
    other.write_bytes((results / "float64/jax-scratch-3dev.safetensors").read_bytes()[:-1])
    assert ("record", "jax", 1) in failed(judge(results))


def test_a_planned_suite_must_be_there_as_planned(results: Path) -> None:
    planned = ["float64", "float32"]
    found = failed(judge(results, suites=planned))
    assert ("record", "jax", 2) in found  # another number of steps is planned
    assert ("record", "jax", 4) not in found
    more = failed(judge(results, suites=planned, more_devices=True))
    assert more > found
    assert ("record", "jax", 4) in more


@pytest.mark.parametrize(
    ("suffix", "why"),
    [(".json", "there is no "), (".safetensors", "it is a pipe, not a file")],
)
def test_a_pipe_is_not_waited_for(results: Path, suffix: str, why: str) -> None:
    place = results / f"float64/mxnet-scratch-3dev{suffix}"
    place.unlink()
    os.mkfifo(place)
    verdict = judge(results)
    assert failed(verdict) == {("record", "mxnet", 3)}
    assert any(why in check.note for check in failures(verdict))
