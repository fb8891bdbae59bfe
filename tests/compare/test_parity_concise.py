"""The parity checks of the concise chapter: batch norm's modes, and the bugs that it invites."""

from pathlib import Path

import pytest
from agreement import edit, failed, judge
from concise_records import fill
from numpy_concise import LocalStatistics, WrongMomentum

from common.backends.frameworks import FRAMEWORKS
from common.compare.concise import CRITERIA
from common.records.store import read_record


@pytest.mark.parametrize("batch_norm", ["per-device", "sync"])
def test_right_frameworks_agree(tmp_path: Path, batch_norm: str) -> None:
    fill(tmp_path, batch_norm)
    verdict = judge(tmp_path)
    assert verdict.passed
    (comparison,) = verdict.comparisons
    compared = {check.devices for check in comparison.checks if check.check == "devices"}
    # Per device, two devices compute something else than one.
    assert compared == ({2} if batch_norm == "sync" else set())


def test_a_wrong_momentum_is_seen_in_the_running_statistics(tmp_path: Path) -> None:
    fill(tmp_path, "sync", jax=WrongMomentum())
    found = failed(judge(tmp_path))
    assert {framework for _, framework, _ in found} == {"jax"}
    assert {check for check, _, _ in found} == {"weights", "outcome", "steps"}


def test_statistics_of_a_shard_are_no_synchronized_ones(tmp_path: Path) -> None:
    fill(tmp_path, "sync", mxnet=LocalStatistics())
    found = failed(judge(tmp_path))
    assert {(framework, devices) for _, framework, devices in found} == {("mxnet", 2)}
    assert {"gradient", "trajectory", "weights", "devices"} <= {check for check, _, _ in found}


def test_runs_that_cannot_be_compared_do_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(CRITERIA.tolerances, "float32")
    fill(tmp_path, "sync", dtype="float32")
    found = failed(judge(tmp_path))
    assert found == {("forward", framework, k) for framework in FRAMEWORKS for k in (1, 2)}


@pytest.mark.parametrize(("dtype", "beginning"), [("float64", 2), ("float32", 1)])
def test_of_a_long_run_the_beginning_is_compared(
    tmp_path: Path, dtype: str, beginning: int
) -> None:
    fill(tmp_path, "sync", dtype, steps=beginning + 1)
    verdict = judge(tmp_path)
    assert verdict.passed
    (comparison,) = verdict.comparisons
    checks = {check.check for check in comparison.checks}
    assert checks == {"record", "shapes", "forward", "gradient", "trajectory", "steps", "devices"}
    record = tmp_path / f"{dtype}-sync" / "jax-concise-2dev.json"
    right = read_record(record).losses
    beginnings = {"trajectory", "devices", "steps"}
    for step, seen in ((beginning, beginnings), (beginning + 1, {"steps"})):
        losses = [loss * (1.0001 if n == step else 1) for n, loss in enumerate(right, start=1)]
        edit(record, losses=losses)
        assert failed(judge(tmp_path)) == {(check, "jax", 2) for check in seen}


def test_each_of_ten_steps_is_compared(tmp_path: Path) -> None:
    fill(tmp_path, "sync", steps=10, jax=WrongMomentum())
    found = failed(judge(tmp_path))
    assert found == {("steps", "jax", 1), ("steps", "jax", 2)}
