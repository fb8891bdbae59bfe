"""A record may come from anyone: nothing in it can break the page, or change what it says."""

import json
from pathlib import Path

import numpy as np
import pytest
from agreement import edit
from hostile import TEXTS, spoil_all
from markup import Page, shown
from safetensors.numpy import load_file, save_file
from seed_figures import put

from common.base.files import sha256
from common.parity import main
from common.terminal.text import printable


def skeleton(page: Page) -> list[tuple[str, tuple[str, ...]]]:
    """The tags of a page and the names of their attributes: all but its text."""
    return [(tag, tuple(attributes)) for tag, attributes in page.tags]


def harmless(page: Page) -> bool:
    """Whether nothing of the page runs, reaches out or hides."""
    return (
        {"script", "object", "iframe"}.isdisjoint(tag for tag, _ in page.tags)
        and {"onerror", "javascript:alert(1)"}.isdisjoint(page.values("href"))
        and all(source.startswith("data:image/svg+xml;base64,") for source in page.values("src"))
        and all(each.isprintable() for each in page.text)
    )


@pytest.mark.parametrize("status", ["complete", "failed"])
def test_no_text_of_a_record_changes_the_page(results: Path, status: str) -> None:
    spoil_all(results, "harmless", status=status)
    plain = skeleton(shown(results))
    for text in TEXTS.values():
        spoil_all(results, text, status=status)
        page = shown(results)
        assert skeleton(page) == plain
        assert harmless(page)
        assert printable(text[:50]) in page.text
        assert len(page.html) < 1_000_000
        assert all(article.strip().startswith("✗") for article in page.articles)


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
    assert harmless(page)
    assert "float64-jax-1" in " ".join(page.runs(failed=True))


@pytest.mark.parametrize("number", [1e308, 5e-324])
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


def test_hostile_figures_of_seeds_and_benchmarks_are_shown_as_text(results: Path) -> None:
    for text in (each[:1000] for each in TEXTS.values()):  # what is larger is refused
        put(results, chapter=text, preset=text, data=text, created=text)
        names = dict.fromkeys(("framework", "chapter", "contender"), text)
        sample = {**names, "devices": 1, "figures": {text: [1e308]}}
        content = {"created": text, "machine": {text: text}, "rounds": 1, "samples": [sample]}
        (results / "bench.json").write_text(json.dumps(content))
        page = shown(results)
        assert harmless(page)
        assert "null hypothesis" in page.text
        assert "Medians of 1 rounds" in page.text
