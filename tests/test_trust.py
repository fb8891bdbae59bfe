"""Records that are missing, stale, spoiled or of another setting are not compared but reported."""

from pathlib import Path
from typing import Any

import numpy_chapter as chapters
import pytest
from agreement import edit, failed, failures, make

from common.parity import judge


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
        ({"schema": 0}, "not a record of schema 1"),
        ({"framework": "pytorch"}, "is of pytorch"),
        ({"devices": ["cpu"]}, "ran on 1 devices"),
        ({"initial_weights_sha256": "0" * 64}, "initial weights is"),
        ({"losses": [float("nan")]}, "not a record"),
    ],
)
def test_a_record_that_cannot_be_trusted_is_refused(
    results: Path, changes: dict[str, Any], why: str
) -> None:
    edit(results / "float64/jax-scratch-2dev.json", **changes)
    verdict = judge(results)
    assert failed(verdict) == {("record", "jax", 2)}
    assert why in failures(verdict)[0].note


def test_another_configuration_is_refused(results: Path) -> None:
    make(results / "float64", "mxnet", chapters.NumpyChapter(), 1, lr=0.06)
    verdict = judge(results)
    assert ("record", "mxnet", 1) in failed(verdict)
    assert "lr is 0.06, and most others have 0.05" in failures(verdict)[0].note


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
