"""A verdict is never greener than what was compared."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy_chapter as chapters
import pytest
from agreement import answer, edit, failed, failures, judge, make
from concise_records import SETTINGS
from numpy_concise import NumpyConcise

from common.backends.frameworks import FRAMEWORKS, WRAPPERS
from common.base.errors import RequestError
from common.base.files import write_text
from common.chapters.suites import Settings, Suite
from common.parity import main
from common.report.text import conclusion


def concise(folder: Path, framework: str, devices: int, **settings: Any) -> Path:
    """A small run of ResNet-18."""
    wrapper = {"wrapper": WRAPPERS[framework][0], "batch_norm": "per-device"}
    return make(folder, framework, NumpyConcise(), devices, **{**SETTINGS, **wrapper, **settings})


def test_runs_of_different_settings_do_not_pass_each_with_its_like(tmp_path: Path) -> None:
    others = {"batch_norm": "sync", "batch_size": 6, "lr": 0.5, "seed": 1}
    for framework in FRAMEWORKS:
        concise(tmp_path, framework, 1, **({} if framework in ("pytorch", "jax") else others))
    verdict = judge(tmp_path)
    refused = {("record", framework, 1) for framework in ("tensorflow", "mxnet")}
    assert failed(verdict) == refused
    assert {check.note for check in failures(verdict)} == {"batch_size is 6, and others have 5"}


def test_nor_do_runs_on_two_devices_that_differ_from_those_on_one(tmp_path: Path) -> None:
    for framework, devices in product(("jax", "mxnet"), (1, 2)):
        concise(tmp_path, framework, devices, **({"seed": 1} if devices == 2 else {}))
    found = failed(judge(tmp_path, frameworks=("jax", "mxnet")))
    assert found == {("record", "jax", 2), ("record", "mxnet", 2)}


def test_a_preset_may_give_each_device_its_own_share(tmp_path: Path) -> None:
    book = {"preset": "book", "train_examples": 40}
    for framework, devices in product(("jax", "mxnet"), (1, 2)):
        share = {"batch_size": 256 * devices, "lr": 0.1 * devices}
        concise(tmp_path, framework, devices, **book, **share)
    assert judge(tmp_path, frameworks=("jax", "mxnet")).passed


def test_a_suite_is_what_it_plans_in_every_setting(tmp_path: Path) -> None:
    for framework, devices in product(FRAMEWORKS, (1, 2)):
        make(tmp_path, framework, chapters.NumpyChapter(), devices, preset="quick")
    verdict = judge(tmp_path)
    assert verdict.passed  # they do agree, and are not called the suite
    assert [comparison.suite for comparison in verdict.comparisons] == ["own"]
    planned = judge(tmp_path, chapters=["scratch"], suites=["quick"])
    assert failed(planned) == {("record", *each) for each in product(FRAMEWORKS, (1, 2))}
    assert failures(planned)[0].note == "batch_size is 10, and the suite asks for 16"


def test_a_floor_holds_for_its_whole_preset_and_for_nothing_else(tmp_path: Path) -> None:
    settings = {"preset": "quick", "epochs": 1, "steps": None}
    for framework in ("jax", "mxnet"):
        answer(make(tmp_path, framework, chapters.NumpyChapter(), 1, **settings), 0.1)
    verdict = judge(tmp_path, frameworks=("jax", "mxnet"))
    assert verdict.passed
    checks = {check.check for comparison in verdict.comparisons for check in comparison.checks}
    assert not checks & {"accuracy", "spread", "curve"}


def test_a_suite_of_which_nothing_is_planned_is_refused(tmp_path: Path) -> None:
    for framework in ("jax", "mxnet"):
        make(tmp_path, framework, chapters.NumpyChapter(), 1, preset="quick")
    with pytest.raises(RequestError, match="no run of ring is planned: see --more-devices"):
        judge(tmp_path, suites=("quick", "ring"))
    with pytest.raises(RequestError, match="no run of float64-sync is planned"):
        judge(tmp_path, suites=("quick", "float64-sync"), chapters=["scratch"])


def test_a_suite_that_is_named_alone_finds_its_run_on_one_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small: Settings = {
        "preset": "book",
        "batch_size": 10,
        "lr": 0.05,
        "steps": 4,
        "dtype": "float64",
    }
    alone = Suite("scratch", "float64", "float64", (1, 2), (), small)
    ring: Settings = {**small, "allreduce": "ring"}
    suites = alone, Suite("scratch", "ring", "ring", (3,), (), ring, alone_in="float64")
    for module in ("planned", "folder"):
        monkeypatch.setattr(f"common.compare.{module}.SUITES", suites)
    monkeypatch.setattr("common.compare.folder.other_settings", lambda *_, **__: {})
    numpys, jax = chapters.NumpyChapter(), {"frameworks": ["jax"], "suites": ["ring"]}
    one = make(tmp_path / "float64", "jax", numpys, 1)
    make(tmp_path / "ring", "jax", numpys, 3, allreduce="ring")
    verdict = judge(tmp_path, **jax)
    assert failed(verdict) == set()
    assert [comparison.suite for comparison in verdict.comparisons] == ["ring"]
    make(tmp_path / "float64", "jax", numpys, 2)
    everything = {"frameworks": ["jax"]}
    assert failed(judge(tmp_path, **everything)) == set()  # the ring has no run on one device
    one.unlink()
    assert ("devices", "jax", 3) in failed(judge(tmp_path, **jax))
    missed = {("record", "jax", 1), ("devices", "jax", 2), ("devices", "jax", 3)}
    assert failed(judge(tmp_path, **everything)) >= missed


def test_a_run_without_its_like_is_compared_with_numpy_alone(tmp_path: Path) -> None:
    for devices in (1, 2):
        concise(tmp_path, "jax", devices)
    verdict = judge(tmp_path, frameworks=["jax"])
    assert verdict.passed
    (comparison,) = verdict.comparisons
    checks = {check.check for check in comparison.checks}
    assert checks == {"record", "shapes", "forward", "gradient", "steps"}
    assert comparison.compared_with == "NumPy's step from each run's own weights"
    assert "jax computed the same as NumPy in single steps, and, where" in conclusion(verdict)


def test_what_a_folder_is_named_after_its_runs_must_be(tmp_path: Path) -> None:
    for framework in ("jax", "mxnet"):
        make(tmp_path / "float64", framework, chapters.NumpyChapter(), 1, dtype="float32")
        (tmp_path / "allreduce").mkdir(exist_ok=True)
        make(tmp_path / "allreduce/ring", framework, chapters.NumpyChapter(), 1)
    found = judge(tmp_path, frameworks=("jax", "mxnet"))
    assert {check.note for check in failures(found)} == {
        "dtype is float32, and the suite asks for float64",
        "allreduce is star, and the suite asks for ring",
    }


def test_one_record_is_not_compared_with_itself(tmp_path: Path) -> None:
    make(tmp_path, "jax", chapters.NumpyChapter(), 1)
    verdict = judge(tmp_path, frameworks=["jax"])
    assert failed(verdict) == {("peers", "jax", 1)}
    assert "no other run is of this setting" in failures(verdict)[0].note
    make(tmp_path, "jax", chapters.NumpyChapter(), 2)
    verdict = judge(tmp_path, frameworks=["jax"])
    assert verdict.passed
    assert "jax computed the same as on other devices; no other framework" in conclusion(verdict)


def test_frameworks_that_were_not_compared_are_named(tmp_path: Path) -> None:
    for framework in ("mxnet", "pytorch"):
        make(tmp_path, framework, chapters.NumpyChapter(), 1)
    verdict = judge(tmp_path, frameworks=("mxnet", "pytorch"))
    said = "pytorch and mxnet computed the same; not compared: tensorflow, jax"
    assert conclusion(verdict).endswith(said)


def test_a_run_under_two_names_is_one(tmp_path: Path) -> None:
    path = make(tmp_path, "jax", chapters.NumpyChapter(), 1)
    make(tmp_path, "mxnet", chapters.NumpyChapter(), 1)
    edit(tmp_path / "mxnet-scratch-1dev.json", epochs=json.loads(path.read_text())["epochs"])
    verdict = judge(tmp_path, frameworks=("jax", "mxnet"))
    assert failed(verdict) == {("record", "jax", 1), ("record", "mxnet", 1)}
    assert "jax on 1 and mxnet on 1 are one run" in failures(verdict)[0].note


def test_runs_of_different_answers_are_not_compared_with_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.records.trace.MOST_BYTES", 0)  # as of a large net, no step is kept
    for devices in (1, 2):
        concise(tmp_path, "jax", devices)
    found = failed(judge(tmp_path, frameworks=["jax"]))
    assert found == {("peers", "jax", 1), ("peers", "jax", 2)}


def test_an_old_verdict_does_not_outlive_an_error(results: Path) -> None:
    files = [results / f"parity.{kind}" for kind in ("json", "md", "html")]
    assert main([str(results)]) == 0
    assert files[0].exists()
    assert files[1].exists()
    for path in (results / "float64").iterdir():
        path.unlink()
    assert main([str(results)]) == 2
    assert not any(path.exists() for path in files)


def test_results_that_cannot_be_written_to_are_judged(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path, text: str) -> None:
        raise OSError(30, "Read-only file system", str(path))

    write_text(results / "parity.json", "of an earlier comparison")
    monkeypatch.setattr("common.parity.write_text", refuse)
    monkeypatch.setattr("common.parity.destination", lambda path: refuse(path, ""))
    assert main([str(results)]) == 0
    out, err = capsys.readouterr()
    assert "every framework computed the same" in out
    assert "the verdict is only printed: [Errno 30] Read-only file system" in err
    assert "of an earlier comparison" in err
