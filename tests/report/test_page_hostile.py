"""A record may come from anyone: nothing in it can break the page, or change what it says."""

import json
from pathlib import Path

import numpy as np
import pytest
from agreement import edit
from hostile import TEXTS, spoil_all
from markup import Page, shown
from safetensors.numpy import load_file, save_file

from common.base.files import sha256
from common.parity import main
from common.terminal.text import printable


def skeleton(page: Page) -> list[tuple[str, tuple[str, ...]]]:
    """The tags of a page and the names of their attributes: all but its text."""
    return [(tag, tuple(attributes)) for tag, attributes in page.tags]


@pytest.fixture
def plain(results: Path) -> list[tuple[str, tuple[str, ...]]]:
    """The skeleton of the page of the same runs with harmless texts."""
    spoil_all(results, "harmless")
    return skeleton(shown(results))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_changes_the_page(
    results: Path, plain: list[tuple[str, tuple[str, ...]]], text: str
) -> None:
    spoil_all(results, text)
    page = shown(results)
    assert skeleton(page) == plain
    assert printable(text[:50]) in page.text
    assert all(each.isprintable() for each in page.text)
    assert len(page.html) < 1_000_000


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_no_text_of_a_failed_run_changes_the_page(results: Path, text: str) -> None:
    skeletons = []
    for each in ("harmless", text):
        spoil_all(results, each, status="failed")
        page = shown(results)
        skeletons.append(skeleton(page))
        assert all(article.strip().startswith("✗") for article in page.articles)
    assert skeletons[0] == skeletons[1]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_names_that_should_not_be_there_are_shown_as_text(results: Path, text: str) -> None:
    path = results / "float64/jax-scratch-1dev.json"
    tensors = path.with_suffix(".safetensors")
    name = text[:1000].replace("\x00", "")
    save_file({**load_file(tensors), name: np.zeros(1)}, tensors)
    edit(path, tensors={"file": tensors.name, "sha256": sha256(tensors)})
    edit(results / "float64/jax-scratch-2dev.json", **{text: 1})
    edit(results / "float64/jax-scratch-3dev.json", tensors={"file": text, "sha256": text})
    page = shown(results)
    assert {"script", "object", "iframe"}.isdisjoint(tag for tag, _ in page.tags)
    assert all(source.startswith("data:") for source in page.values("src"))
    assert {"onerror", "javascript:alert(1)"}.isdisjoint(page.values("href"))
    assert all(each.isprintable() for each in page.text)
    assert "float64-jax-1" in " ".join(page.runs(failed=True))


@pytest.mark.parametrize("number", [1e308, -1e308, 5e-324, 0.0])
def test_no_number_breaks_the_page(results: Path, number: float) -> None:
    for path in (results / "float64").glob("jax-*.json"):
        record = json.loads(path.read_text())
        seconds = 1e-300 * record["epochs"][0]["seconds"]
        epochs = [{**record["epochs"][0], "seconds": seconds, "images_per_second": 40 / seconds}]
        losses = [number, *record["losses"][1:-1], -number]
        edit(path, losses=losses, epochs=epochs, peak_memory=2**63 - 1)
    assert main([str(results)]) == 1
    (suspect,) = shown(results).articles
    assert suspect.strip().startswith("✗ jax: losses, step 1")


def test_a_benchmark_of_many_figures_does_not_fill_the_page(results: Path) -> None:
    sample = {"framework": "jax", "chapter": "scratch", "contender": "ours", "devices": 1}
    samples = [{**sample, "figures": {f"{n}": [1.0]}} for n in range(2000)]
    content = {"created": "", "machine": {}, "rounds": 1, "samples": samples}
    (results / "bench.json").write_text(json.dumps(content))
    assert len(shown(results).html) < 5_000_000


def test_a_hostile_benchmark_is_shown_as_text(results: Path) -> None:
    for text in TEXTS.values():
        sample = {
            "framework": text,
            "chapter": text,
            "contender": text,
            "devices": 1,
            "figures": {text: [1e308]},
        }
        content = {"created": text, "machine": {text: text}, "rounds": 1, "samples": [sample]}
        (results / "bench.json").write_text(json.dumps(content))
        page = shown(results)
        assert {"script", "object", "iframe"}.isdisjoint(tag for tag, _ in page.tags)
        assert all(each.isprintable() for each in page.text)
