"""The page shows how much of an accuracy is chance, or says why it cannot; no file breaks it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hostile import TEXTS
from markup import Page, shown
from seed_figures import put

from common.base.files import MOST_FIGURES
from common.report.seeds import chance


def harmless(page: Page) -> bool:
    """Whether the page is whole, and holds nothing but what the templates put there."""
    return (
        {"script", "object", "iframe"}.isdisjoint(tag for tag, _ in page.tags)
        and all(source.startswith("data:image/svg+xml;base64,") for source in page.values("src"))
        and all(each.isprintable() for each in page.text)
        and "all 104 checks passed" in page.headline
    )


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
    "changes",
    [
        {"frameworks": 3},
        {"seeds": [0, 1]},
        {"over_seeds": float("nan")},
        {"over_frameworks": 1e308},
        {"test": {"statistic": 0, "p_value": -1, "relabellings": 1, "exact": True, "smallest": 1}},
        {"created": "x" * MOST_FIGURES},
    ],
)
def test_figures_that_cannot_be_are_said_to_be_so_in_a_line(
    results: Path, changes: dict[str, Any]
) -> None:
    put(results, **changes)
    page = shown(results)
    assert harmless(page)
    assert "seeds.json cannot be read: " in page.text
    assert "null hypothesis" not in page.text


@pytest.mark.parametrize(("least", "why"), [(-0.1, "a share"), (float("inf"), "a share")])
def test_accuracies_that_are_no_shares_are_refused(results: Path, least: float, why: str) -> None:
    put(results)
    path = results / "seeds/seeds.json"
    content = json.loads(path.read_text())
    content["frameworks"][0]["accuracies"][0] = least
    path.write_text(json.dumps(content))
    found = chance(results)
    assert found is not None
    assert why in found.line
    assert found.picture is None


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[" * 100_000, b"9" * 10_000])
def test_files_that_hold_no_figures_are_said_to_be_so_in_a_line(
    results: Path, content: bytes
) -> None:
    (results / "seeds").mkdir()
    for name in ("seeds/seeds.json", "bench.json"):
        (results / name).write_bytes(content)
    page = shown(results)
    assert harmless(page)
    assert page.text.count("json cannot be read: ") == 2


def test_folders_instead_of_files_are_said_to_be_so(results: Path) -> None:
    for name in ("seeds/seeds.json", "bench.json"):
        (results / name).mkdir(parents=True)
    page = shown(results)
    assert harmless(page)
    assert page.text.count("json cannot be read: ") == 2


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_hostile_figures_are_shown_as_text(results: Path, text: str) -> None:
    put(results, chapter=text, preset=text, data=text, created=text)
    page = shown(results)
    assert harmless(page)
    assert "null hypothesis" in page.text
    figures = json.loads((results / "seeds/seeds.json").read_text())
    framework = figures["frameworks"][0] | {"framework": text}
    put(results, frameworks=[framework, *figures["frameworks"][1:]])
    page = shown(results)
    assert harmless(page)
    assert "a framework that there is not" in page.text
