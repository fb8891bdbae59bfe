"""The page says at first sight whether all is well, and if not, who is wrong, where and why."""

import re
from pathlib import Path

import numpy as np
import numpy_chapter as chapters
import pytest
from agreement import edit, make, rewrite
from markup import shown

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.records.new import failure_of
from common.records.store import read_record, read_tensors


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
