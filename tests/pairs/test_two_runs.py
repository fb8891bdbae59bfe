"""Two runs: of which setting they are, and where they begin to diverge."""

import json
from pathlib import Path

import numpy as np
import numpy_chapter as chapters
import pytest
from agreement import ROUNDED, edit, make, rewrite

from common.base.errors import RequestError, RunError
from common.compare import numpy_nets
from common.compare.findings import Check
from common.compare.runs import NUMERICAL, RecordedRun
from common.models.nets import LENET
from common.pairs.arrays import PairVerdict
from common.pairs.runs import compare_runs, read_run
from common.records.record import read_record, read_tensors, write_record


def compared(ours: Path, theirs: Path, tolerance: float | None = None) -> PairVerdict:
    return compare_runs(read_run(ours), read_run(theirs), tolerance)


def failed(verdict: PairVerdict) -> list[Check]:
    return [check for check in verdict.checks if not check.passed]


def test_agreeing_runs_are_compared_in_every_array(ours: Path, theirs: Path) -> None:
    edit(ours, source_sha256="0" * 64)
    config = json.loads(theirs.read_text())["config"] | {"framework": "/etc"}
    flags = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    edit(theirs, framework="/etc", config=config, environment=flags)
    verdict = compared(ours, theirs)
    assert verdict.passed
    limits = {check.check: check.tolerance for check in verdict.checks}
    assert limits == dict.fromkeys(NUMERICAL, 1e-10)
    assert verdict.notes == [
        "the first: pytorch scratch on cpu:0, float64",
        "the first was made by other code than is here",
        "the second: /etc scratch on cpu:0, cpu:1, float64, "
        "XLA_FLAGS=--xla_cpu_enable_fast_math=true",
        "the second was made by other code than is here",
    ]
    run, right = read_run(ours), read_run(theirs)
    each = [f"{part}/{name}" for part in ("gradients", "weights") for name in LENET]
    for array in ("logits/before", *each, "losses", "logits/after"):
        wrong = RecordedRun(run.record, {**run.arrays, array: run.arrays[array] + 1e-3})
        assert [check.array for check in failed(compare_runs(wrong, right))] == [array]


def test_what_diverges_first_is_named(two: Path, ours: Path, theirs: Path) -> None:
    found = compared(make(two, "pytorch", chapters.SharedMemory(), 2), theirs)
    assert failed(found)[0].array == "losses"
    assert ", first in losses of the first steps: " in found.conclusion
    losses = json.loads(ours.read_text())["losses"]
    edit(ours, losses=[losses[0], losses[1] + 1e-8, losses[2] + 1e-7, losses[3]])
    (pair,) = failed(compared(ours, theirs))
    assert (pair.array, pair.where, pair.note) == ("losses", "step 3", "first at step 2")
    assert compared(ours, theirs, 1e-6).passed
    assert failed(compared(ours, theirs, 2e-8))[0].note == "first at step 3"


def test_runs_that_share_steps_are_not_compared(ours: Path, theirs: Path) -> None:
    begun = json.loads(theirs.read_text())["started"]
    resumption = {"started": begun, "framework": "jax", "devices": 2, "differences": ["a"]}
    edit(ours, resumed=[resumption | {"step": 2}])
    line = "not comparable: one run has trained steps 1 to 2 of both; run one of them from step 1"
    with pytest.raises(RequestError, match=line):
        compared(ours, theirs)
    edit(theirs, resumed=[resumption | {"step": 3, "started": "2030"}])
    edit(ours, resumed=[resumption | {"step": 1, "started": "2030"}])
    with pytest.raises(RequestError, match="one run has trained steps 1 to 1 of both"):
        compared(ours, theirs)
    edit(theirs, resumed=[])
    verdict = compared(ours, theirs)
    assert verdict.passed
    assert verdict.notes[1] == "the first: steps 1 to 1 were trained in another setup (a)"


def test_of_a_long_run_the_beginning_and_the_curve_are_compared(two: Path) -> None:
    long = {"steps": None, "epochs": 6}
    first, second = (
        make(two, name, chapters.NumpyChapter(), 1, **long) for name in ("jax", "mxnet")
    )
    verdict = compared(first, second)
    assert verdict.passed
    limits = {pair.check: pair.tolerance for pair in verdict.checks}
    exact = dict.fromkeys(("forward", "gradient", "trajectory"), 1e-10)
    assert limits == {**exact, "curve": 0.2, "weights": None, "outcome": None}
    losses = json.loads(first.read_text())["losses"]
    edit(first, losses=[*losses[:20], *(2 * loss for loss in losses[20:])])
    assert [pair.where for pair in failed(compared(first, second))] == ["epoch 6"]
    edit(first, losses=[*losses[:19], losses[19] + 1e-6, *losses[20:]])
    assert [pair.note for pair in failed(compared(first, second))] == ["first at step 20"]
    rewrite(first, {"weights/fc2.bias": np.full(10, np.nan)})
    assert "weights/fc2.bias" in [pair.array for pair in failed(compared(first, second))]


def test_two_float32_runs_are_right_with_a_flip_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_nets, "DOUBT", 300)
    first = make(tmp_path, "jax", chapters.Flips(), 1, **ROUNDED)
    second = make(tmp_path, "mxnet", chapters.NumpyConcise(), 1, **ROUNDED)
    verdict = compared(first, second)
    assert verdict.passed
    assert [check.note for check in verdict.checks if check.check == "steps"] == [
        "of the first",
        "of the second",
    ]
    biases = read_tensors(second, read_record(second))["trace/weights/1/fc.bias"]
    rewrite(second, {"trace/weights/1/fc.bias": biases + np.float32(0.01)})
    (check,) = failed(compared(first, second))
    assert (check.check, check.note) == ("steps", "of the second")


def test_steps_that_other_code_has_kept_are_an_error(tmp_path: Path) -> None:
    first, second = (
        make(tmp_path, name, chapters.NumpyChapter(), 1, dtype="float32")
        for name in ("jax", "mxnet")
    )
    tensors = read_tensors(second, read_record(second))
    del tensors["trace/images/3"]
    write_record(second, read_record(second), tensors)
    line = "mxnet-scratch-1dev cannot be compared: trace/images/3 is missing, expected uint8"
    with pytest.raises(RunError, match=line):
        compared(first, second)
    assert compared(first, second, 1e-3).passed
