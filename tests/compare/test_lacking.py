"""Suites that not every framework can run: nobody misses those runs, or takes them for passed."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from agreement import failed, failures, judge, make
from numpy_chapter import NumpyChapter, StaleReplica, SumInsteadOfMean

from common.backends.frameworks import FRAMEWORKS, NO_NATIVE
from common.base.errors import RequestError, RunError
from common.chapters.chapters import SUITES
from common.chapters.suites import Settings, Suite
from common.parity import PAGE_NEEDS, main
from common.report.text import conclusion

SIZES: Settings = {"batch_size": 4, "steps": 2, "train_examples": 7, "test_examples": 5}
SETTINGS: Settings = {**SIZES, "seed": 0, "lr": 0.2, "dtype": "float64"}
FOR_ALL = Suite("scratch", "float64", "float64", (1, 2), (), SETTINGS)
RING: Settings = {**SETTINGS, "allreduce": "ring"}
FOR_SOME = Suite("scratch", "float64-own", "own", (2,), (), RING, alone_in="float64")
WHY = "it has no ring"
BOTH = [FOR_ALL, replace(FOR_SOME, lacking={"mxnet": WHY})]


def run(folder: Path, suite: Suite, framework: str, devices: int, backend: Any = None) -> Path:
    place = folder / suite.folder
    place.mkdir(parents=True, exist_ok=True)
    settings = {**suite.settings, "init_weights": None}
    return make(place, framework, backend or NumpyChapter(), devices, **settings)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in ("planned", "folder"):
        monkeypatch.setattr(f"common.compare.{module}.SUITES", BOTH)
    for framework in FRAMEWORKS:
        for devices in (1, 2):
            run(tmp_path, FOR_ALL, framework, devices)
        if framework != "mxnet":
            run(tmp_path, FOR_SOME, framework, 2)
    return tmp_path


def test_what_is_lacking_is_told_and_not_missed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(folder), "--suites"]) == 0
    said = capsys.readouterr().out
    assert f"no runs of mxnet: {WHY}" in " ".join(said.split())
    assert (
        "checks passed: every framework computed the same; of what others lack, pytorch, "
        "tensorflow and jax computed the same"
    ) in said.replace("\n", "")
    kept = json.loads((folder / "parity.json").read_text())
    for_all, for_some = kept["comparisons"]
    assert (for_all["lacking"], for_some["lacking"]) == ({}, {"mxnet": WHY})
    assert {check["framework"] for check in for_some["checks"]} == {*FRAMEWORKS} - {"mxnet"}
    assert "devices" in {check["check"] for check in for_some["checks"]}
    _, table = (folder / "parity.md").read_text().split("float64-own, on 2")
    rows = [line.split(" | ") for line in table.splitlines() if line[:1] == "|"][2:]
    assert {row[4] for row in rows} == {"none"}
    assert all("✓" in row[3] for row in rows)
    if all(map(find_spec, PAGE_NEEDS)):  # which all have, but for what has NumPy 1.23
        page = (folder / "parity.html").read_text()
        assert "<td>none</td>" in page
        assert f"no runs of mxnet: {WHY}" in page


def test_a_record_of_it_is_left_out(folder: Path) -> None:
    with pytest.raises(RunError):
        run(folder, FOR_SOME, "mxnet", 2, StaleReplica())
    (folder / "own/mxnet-scratch-1dev.json").write_text("no record")
    for suites in ((), None):
        verdict = judge(folder, suites=suites)
        assert failed(verdict) == set()
        assert verdict.comparisons[1].lacking == {"mxnet": WHY}


def test_one_framework_alone_is_compared(folder: Path) -> None:
    verdict = judge(folder, suites=["float64-own"], frameworks=["jax", "mxnet"])
    assert verdict.passed
    assert conclusion(verdict).endswith(
        "of what others lack, jax computed the same as on other devices"
    )
    (folder / "own/jax-scratch-2dev.json").unlink()
    verdict = judge(folder, suites=["float64-own"], frameworks=["jax", "mxnet"])
    assert failed(verdict) == {("record", "jax", 2)}


def test_where_no_framework_can_run_there_is_no_suite(folder: Path) -> None:
    (comparison,) = judge(folder, suites=(), frameworks=["mxnet"]).comparisons
    assert comparison.suite == "float64"
    with pytest.raises(RequestError, match="no run of float64-own is planned"):
        judge(folder, suites=["float64-own"], frameworks=["mxnet"])


def test_a_wrong_run_of_some_is_not_what_other_suites_are_compared_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = replace(FOR_SOME, name="float64-again", folder="again")
    others = dict.fromkeys(("pytorch", "tensorflow", "mxnet"), WHY)
    monkeypatch.setattr(
        "common.compare.folder.SUITES", [FOR_ALL, replace(FOR_SOME, lacking=others), again]
    )
    for framework in FRAMEWORKS:
        run(folder, again, framework, 2)
    run(folder, FOR_SOME, "jax", 2, SumInsteadOfMean())
    wrong = failures(judge(folder, suites=()))
    assert {(each.suite, each.framework) for each in wrong} == {("float64-own", "jax")}


def test_own_means_are_planned_for_frameworks_that_have_them() -> None:
    lacking = {suite.name: suite.lacking for suite in SUITES if suite.settings.get("native")}
    assert not any(suite.lacking for suite in SUITES if suite.name not in lacking)
    assert lacking["float64-native-naive"] == {
        name: NO_NATIVE[name]["naive"] for name in ("pytorch", "jax")
    } | {"tensorflow": NO_NATIVE["tensorflow"]["pipeline"]}
    assert lacking["float64-native-tensor-mesh"].keys() == {"mxnet"}
