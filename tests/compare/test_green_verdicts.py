"""A verdict is never greener than what was compared."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy_chapter as chapters
import pytest
from agreement import CONCISE, failed, judge, make, rewrite
from numpy_chapter import NumpyConcise

from common.backends.frameworks import FRAMEWORKS
from common.chapters.suites import SUITES, Suite
from common.parity import main


def concise(folder: Path, framework: str, devices: int, **settings: Any) -> Path:
    """A small run of ResNet-18."""
    settings = {**CONCISE, "batch_norm": "per-device", **settings}
    return make(folder, framework, NumpyConcise(), devices, **settings)


def test_runs_of_different_settings_do_not_pass_each_with_its_like(tmp_path: Path) -> None:
    others = {"batch_norm": "sync", "batch_size": 6, "lr": 0.5, "seed": 1}
    for framework in FRAMEWORKS:
        concise(tmp_path, framework, 1, **({} if framework in ("pytorch", "jax") else others))
    found = judge(tmp_path)
    refused = {("record", framework, 1) for framework in ("tensorflow", "mxnet")}
    assert failed(found) == refused
    assert {check.note for check in found.failures} == {"batch_size is 6, and others have 5"}
    for framework in FRAMEWORKS:
        concise(tmp_path, framework, 1)
        concise(tmp_path, framework, 2, seed=1)
    assert failed(judge(tmp_path)) == {("record", framework, 2) for framework in FRAMEWORKS}


def test_a_preset_may_give_each_device_its_own_share(tmp_path: Path) -> None:
    book = {"preset": "book", "train_examples": 40}
    for framework, devices in product(("jax", "mxnet"), (1, 2)):
        share = {"batch_size": 256 * devices, "lr": 0.1 * devices}
        concise(tmp_path, framework, devices, **book, **share)
    assert judge(tmp_path, frameworks=("jax", "mxnet")).passed


def test_a_suite_is_what_it_plans_in_every_setting(tmp_path: Path) -> None:
    for framework, devices in product(FRAMEWORKS, (1, 2)):
        make(tmp_path, framework, chapters.NumpyChapter(), devices, preset="quick")
    found = judge(tmp_path)
    assert found.passed  # they do agree, and are not called the suite
    assert [comparison.suite for comparison in found.comparisons] == ["own"]
    chosen: Any = {"known": SUITES[:1], "planned": Suite.counts}
    planned = judge(tmp_path, **chosen)
    assert failed(planned) == {("record", *each) for each in product(FRAMEWORKS, (1, 2))}
    assert planned.failures[0].note == "batch_size is 10, and the suite asks for 16"


def test_a_run_without_its_like_is_compared_with_numpy_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for devices in (1, 2):
        concise(tmp_path, "jax", devices)
    (comparison,) = judge(tmp_path, frameworks=["jax"]).comparisons
    assert all(check.passed for check in comparison.checks)
    checks = {check.check for check in comparison.checks}
    assert checks == {"record", "shapes", "forward", "gradient", "steps"}
    assert comparison.compared_with == "NumPy's step from each run's own weights"
    monkeypatch.setattr("common.records.trace.MOST_BYTES", 0)  # as of a large net, no step is kept
    for devices in (1, 2):
        concise(tmp_path, "jax", devices)
    assert failed(judge(tmp_path, frameworks=["jax"])) == {("peers", "jax", k) for k in (1, 2)}


def test_results_that_cannot_be_written_to_are_judged_and_a_record_of_no_suite_is_named(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (results / "parity.json").mkdir()
    (results / "jax-strategies-tensorx2-4dev.json").write_text("no record")
    assert main([str(results)]) == 0
    out, err = capsys.readouterr()
    ignored = "not compared, as no suite has them: jax-strategies-tensorx2-4dev.json"
    assert out.endswith(f"every framework computed the same; {ignored}\n")
    assert "the verdict is only printed: " in err


def test_a_spoiled_run_on_one_device_spoils_no_other(results: Path) -> None:
    path = results / "float64/jax-scratch-1dev.json"
    rewrite(path, {"weights/fc1.weight": np.zeros(3)})
    found = failed(judge(results))
    assert found == {("shapes", "jax", 1), ("devices", "jax", 2), ("devices", "jax", 3)}
