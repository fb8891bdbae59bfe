"""The page says at first sight whether all is well, and if not, what is wrong, where and why."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy_chapter as chapters
import pytest
from agreement import edit, make, rewrite
from markup import shown
from seed_figures import put

import common.parity
from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.parity import main
from common.records.new import failure_of
from common.records.store import read_record, read_tensors

ROOT = Path(__file__).parents[2]


def test_a_page_of_good_runs_says_so_and_every_link_leads_somewhere(results: Path) -> None:
    page = shown(results)
    assert page.articles == []
    assert page.headline == "✓ all 104 checks passed: every framework computed the same"
    assert page.runs(failed=True) == []
    assert len(page.runs(failed=False)) == 4 * 3
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in page.values("href")} <= set(ids)
    for wanted in ("gradient of the first step", "1e-10", "4.4e-15", "step 1", "numpy"):
        assert wanted in page.text


def test_a_page_needs_nothing_from_elsewhere_and_nothing_in_it_runs(results: Path) -> None:
    page = shown(results)
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.values("src"))
    assert all(link.startswith("#") for link in page.values("href"))
    assert {tag for tag, _ in page.tags}.isdisjoint({"script", "link", "iframe", "object"})
    assert "default-src 'none'" in page.html
    assert "@import" not in page.html
    assert "url(" not in page.html


@pytest.mark.parametrize(
    ("bug", "devices", "told"),
    [
        (chapters.WrongFlattenOrder, 1, ["fc1.weight, before step 1", "row, column, channel"]),
        (chapters.MeanOfMeans, 3, ["step 1", "On one device it passes"]),
        (chapters.UnnoticedStaleReplica, 2, ["losses, step 2", "8 weights are off, most"]),
    ],
)
def test_the_guilty_framework_comes_first_with_tensor_and_step(
    results: Path, bug: type[chapters.NumpyChapter], devices: int, told: list[str]
) -> None:
    make(results / "float64", "jax", bug(), devices)
    page = shown(results)
    assert re.fullmatch(r"✗ \d+ of 104 checks FAILED", page.headline)
    (suspect,) = page.articles
    assert suspect.strip().startswith("✗ jax: ")
    for each in told:
        assert each in suspect
    assert "pytorch, tensorflow and mxnet agree with each other" in suspect
    assert "✓ pytorch, tensorflow, mxnet: no check failed" in page.text
    assert f"#scratch-float64-jax-{devices}" in page.runs(failed=True)
    assert all("-jax-" in run for run in page.runs(failed=True))


def test_a_run_that_ended_itself_says_why(results: Path) -> None:
    with pytest.raises(RunError):
        make(results / "float64", "mxnet", chapters.StaleReplica(), 2)
    page = shown(results)
    (suspect,) = page.articles
    assert suspect.strip().startswith("✗ mxnet: conv1.weight, found after step 1, where copies")
    assert "A later run of it failed, as conv1.weight on device 1 differs from its" in suspect
    assert "On one device it passes: several devices are what goes wrong" in suspect
    assert page.headline == "✗ 1 of 96 checks FAILED"
    assert "2 ✗ failed" in page.text
    with pytest.raises(RunError):
        make(results / "float64", "mxnet", chapters.NotANumber(), 2)
    (suspect,) = shown(results).articles
    assert "the loss of step 2 is nan" in suspect


def test_without_a_majority_no_framework_is_called_right(results: Path) -> None:
    frameworks = ("jax", "mxnet")
    for devices in (1, 2, 3):
        make(results / "float64", "jax", chapters.SumInsteadOfMean(), devices)
        page = shown(results, frameworks=frameworks)
        if devices == 1:  # its other runs agree with the other framework's
            (suspect,) = page.articles
            assert suspect.strip().startswith("✗ jax: ")
            assert "do not tell who is right" not in suspect
    assert len(page.articles) == 2
    for suspect in page.articles:
        assert "do not tell who is right" in suspect
        assert "No two frameworks agree" in suspect


def test_what_float64_passes_is_rounding(results: Path) -> None:
    for framework in FRAMEWORKS:
        make(results / "float32", framework, chapters.NumpyChapter(), 1, dtype="float32")
    path = results / "float32/jax-scratch-1dev.json"
    gradient = read_tensors(path, read_record(path))["gradients/fc1.bias"]
    rewrite(path, {"gradients/fc1.bias": gradient + np.float32(1)})
    (suspect,) = shown(results).articles
    assert "jax: fc1.bias, step 1" in suspect
    assert "In float64 the same run passes" in suspect


def test_a_run_that_broke_down_comes_after_one_that_is_wrong(results: Path) -> None:
    make(results / "float64", "mxnet", chapters.WrongFlattenOrder(), 2)
    failure = failure_of(BrokenPipeError("[Errno 32] Broken pipe")).model_dump()
    edit(results / "float64/jax-scratch-1dev.json", status="failed", failure=failure)
    page = shown(results)
    wrong, broken = page.articles
    assert wrong.strip().startswith("✗ mxnet: fc1.weight")
    assert broken.strip().startswith("✗ jax: its run failed")
    assert "The run failed: BrokenPipeError" in broken
    # What lacks the run on one device has no number that tells it; see the grid.
    assert "1 ✗ failed2 ✗ alone3 ✗ alone" in page.text


def test_missing_records_are_no_culprits_but_named(results: Path) -> None:
    (results / "float64/mxnet-scratch-3dev.json").unlink()
    page = shown(results)
    (suspect,) = page.articles
    assert suspect.strip().startswith("✗ Records that cannot be used: mxnet")
    assert "there is no" in suspect
    assert page.runs(failed=True) == ["#scratch-float64-mxnet-3"]


def test_a_variable_that_may_change_rounding_is_named(results: Path) -> None:
    edit(results / "float64" / "jax-scratch-2dev.json", environment={"TOY_ISA": "avx2"})
    page = shown(results, frameworks=["jax"])
    assert "; TOY_ISA=avx2 in jax on 2" in page.text
    assert "TOY_ISA avx2" in page.text.partition("Variables that may change rounding")[2]


def test_both_spreads_the_test_and_its_p_value_are_shown(results: Path) -> None:
    before = shown(results)
    assert "#chance" not in before.values("href")
    assert "null hypothesis" not in before.text
    put(results)
    page = shown(results)
    assert "#chance" in page.values("href")
    assert "scratch: test accuracy of every seed" in page.values("alt")
    for told in (
        "4,800 fashion-mnist images, devices: 1; seeds 0, 1, 2",
        "written 2026-11-22",
        "standard deviation of one framework over the seeds: 0.0183; of the frameworks at "
        "one seed: 0.0136",
        "null hypothesis: which framework ran makes no difference",
        "p = 0.0694 (all 576 permutations",
        "pytorch0.82000.02000.80000.8400",
        "jax - mxnet-0.02330.01530.0088",
    ):
        assert told in page.text


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"frameworks": 3}, "frameworks Input should be"),
        ({"over_seeds": 1e308}, "over_seeds Input"),
    ],
)
def test_files_of_figures_that_cannot_be_are_named(
    results: Path, changes: dict[str, Any], why: str
) -> None:
    put(results, **changes)
    (results / "bench.json").write_text("{}")
    page = shown(results)
    assert "all 104 checks passed" in page.headline
    assert f"seeds.json is not what `python -m common.seeds` writes: {why}" in page.text
    assert "bench.json is not what `nox -s bench` writes: created Field required" in page.text
    assert "null hypothesis" not in page.text


def test_what_made_a_record_is_shown_as_a_shell_takes_it(results: Path) -> None:
    path = results / "float64/jax-scratch-1dev.json"
    edit(path, command=["python", "-m", "frameworks.jax.scratch", "--out=a b"])
    assert "python -m frameworks.jax.scratch '--out=a b'" in shown(results).text


def test_a_benchmark_beside_the_records_is_shown(results: Path) -> None:
    assert "Benchmark" not in shown(results).text
    shutil.copy(ROOT / "docs/bench-2026-11-21.json", results / "bench.json")
    page = shown(results)
    assert "Benchmark" in page.text
    assert "keras" in page.text


def test_where_the_page_cannot_be_made_no_old_one_is_left(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(results)]) == 0
    assert (results / "parity.html").exists()

    def missing(*_: Any) -> str:
        raise ModuleNotFoundError("No module named 'jinja2'", name="jinja2")

    monkeypatch.setattr("common.report.page.page", missing)
    capsys.readouterr()
    assert main([str(results)]) == 0
    assert not (results / "parity.html").exists()
    *_, conclusion, last = capsys.readouterr().out.splitlines()
    assert "checks passed" in conclusion
    needs = f"jinja2 and matplotlib make it: nox -s parity -- {results}"
    assert last == f"no {results}/parity.html: {needs}"
    monkeypatch.setattr(common.parity, "PAGE_NEEDS", ())
    with pytest.raises(ModuleNotFoundError):
        main([str(results)])
