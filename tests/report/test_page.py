"""The page says at first sight whether all is well, and if not, what is wrong, where and why."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy_chapter as chapters
import pytest
from agreement import edit, make, make_runs, of_suite, trained
from numpy_chapter import NumpyConcise, WrongEpsilon

from common.base.errors import RunError, printable
from common.compare.comparison import compare, verdict_on
from common.compare.folder import examine
from common.diagnose.suspects import suspects
from common.parity import main
from common.records.record import Failure
from common.report.text import page

TEXTS = {
    "script": "<script>document.title = 'broken'; alert(1)</script>",
    "attribute": "\"'><img src=x onerror=alert(1)><a href=javascript:alert(1) title='",
    "ends": "</code></td></table></style></title></body>-->]]>{{ 7 * 7 }}{% raw %}",
    "long": "a" * 100_000,
    "controls": "\x00\x07\x1b[31m\x1b]0;title\x07\r\n\x7f\x9b",
    "directions": "\u202egnp.exe\u202c \u2066\u200f\u061c \u05d0\u05d1\u05d2 \u0645\u0631\u062d",
    "accents": "Z" + "\u0300\u0489\u20dd" * 300,
}
"""What a page must not show as it is."""


class Page:
    """A page that is well-formed, its text, and the text of each `article`."""

    def __init__(self, html: str) -> None:
        self.html = html
        closed = re.sub("<(meta.*)>", r"<\1/>", html.removeprefix("<!doctype html>"))
        self.tags = [*ElementTree.fromstring(closed).iter()]
        self.text, *_ = self.texts("html")
        self.articles = self.texts("article")

    def texts(self, tag: str) -> list[str]:
        found = [tree for tree in self.tags if tree.tag == tag]
        return ["".join(tree.itertext()).replace("\n", " ").strip() for tree in found]

    def values(self, attribute: str) -> list[str]:
        """The values of an attribute, in all tags."""
        return [tag.attrib[attribute] for tag in self.tags if attribute in tag.attrib]


def shown(folder: Path, **chosen: Any) -> Page:
    """The page on the records in `folder`."""
    examined = examine(folder, **chosen)
    return Page(page(verdict_on(examined), suspects(examined)))


def test_a_page_of_good_runs_says_so_and_needs_nothing_from_elsewhere(results: Path) -> None:
    page = shown(results)
    assert page.articles == []
    assert "✓ all 104 checks passed: every framework computed the same" in page.text
    for wanted in ("scratch, float64, on 1, 2, 3 devices", "gradient of the first step", "≤ 1e-10"):
        assert wanted in page.text
    assert len(page.texts("td")) == 9 * 5  # no cell but the checks' and limits'
    assert page.values("src") == []
    assert {tag.tag for tag in page.tags}.isdisjoint({"script", "link", "iframe", "object"})
    assert "default-src 'none'" in page.html


@pytest.mark.parametrize(
    ("bug", "devices", "told"),
    [
        (chapters.WrongFlattenOrder, 1, ["logits/before, before step 1", "the net differs"]),
        (chapters.MeanOfMeans, 3, ["fc2.bias, step 1", "In 8 tensors", "Fits: in step 1"]),
        (chapters.UnnoticedStaleReplica, 2, ["losses, step 2", "what an update leaves"]),
    ],
)
def test_the_framework_that_is_wrong_comes_first_with_tensor_and_step(
    results: Path,
    bug: type[chapters.NumpyChapter],
    devices: int,
    told: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    make(results / "float64", "jax", bug(), devices)
    assert main([str(results)]) == 1
    page = Page((results / "parity.html").read_text("utf-8"))
    assert "of 104 checks FAILED" in page.text
    (suspect,) = page.articles
    assert suspect.startswith("✗ jax: ")
    for each in [*told, f"on {devices}"]:
        assert each in suspect
    assert "✓ pytorch, tensorflow, mxnet: no check failed" in page.text
    assert "FAILED weights: jax scratch on" in page.text
    printed = "jax scratch, fits: in step 1, the gradient is" in capsys.readouterr().out
    assert printed == (bug is chapters.MeanOfMeans)
    assert set(page.values("href")) == {"#scratch-float64"} <= {f"#{x}" for x in page.values("id")}


def test_without_a_majority_or_numpys_steps_no_framework_is_called_right() -> None:
    right = [trained("mxnet", chapters.NumpyChapter(), k) for k in (1, 2)]
    wrong = [trained("jax", chapters.SumInsteadOfMean(), k) for k in (1, 2)]
    for runs, decided in (([*right, *wrong], False), ([right[0], *wrong], True)):
        accused = suspects(compare([of_suite(*runs)], {}))
        assert {suspect.decided for suspect in accused} == {decided}
    assert {suspect.framework for suspect in accused} == {"mxnet"}


def test_a_run_that_failed_comes_after_one_that_is_wrong_and_then_records_that_lack(
    results: Path,
) -> None:
    make(results / "float64", "mxnet", chapters.WrongFlattenOrder(), 2)
    failure = Failure.of(BrokenPipeError("[Errno 32] Broken pipe")).model_dump()
    edit(results / "float64/jax-scratch-1dev.json", status="failed", failure=failure)
    with pytest.raises(RunError):
        make(results / "float64", "tensorflow", chapters.StaleReplica(), 2)
    (results / "float64/pytorch-scratch-3dev.json").unlink()
    stale, wrong, broken, lacking = shown(results).articles
    assert wrong.startswith("✗ mxnet: logits/before")
    assert stale.startswith("✗ tensorflow: conv1.weight, found after step 1, where copies")
    assert "Fits: copies of conv1.weight differ: a reduction is missing" in stale
    assert broken.startswith("✗ jax: its run failed")
    assert "The run failed: BrokenPipeError" in broken
    assert lacking.startswith("✗ Records that cannot be used: pytorch")
    assert "there is no" in lacking


def test_the_first_wrong_layer_is_named(tmp_path: Path) -> None:
    make_runs(tmp_path, NumpyConcise(), "jax", "mxnet")
    make_runs(tmp_path, WrongEpsilon(), "tensorflow")
    (article,) = shown(tmp_path, frameworks=["jax", "mxnet", "tensorflow"]).articles
    assert "tensorflow: stage3.block1.bn2, before step 1" in article
    assert "the output of this layer is off, as the first" in article


def test_no_text_of_a_record_changes_the_page(theirs: Path) -> None:
    def spoiled(text: str) -> Page:
        failure = {"message": text, "tensor": text, "traceback": text}
        edit(theirs, status="failed", failure=failure, environment={text: text}, command=[text])
        return shown(theirs.parent, frameworks=["jax"])

    plain = [(tag.tag, tag.attrib) for tag in spoiled("harmless").tags]
    for text in TEXTS.values():
        page = spoiled(text)
        assert [(tag.tag, tag.attrib) for tag in page.tags] == plain
        assert printable(text[:50]) in page.text
        assert page.text.isprintable()
        assert len(page.html) < 1_000_000
