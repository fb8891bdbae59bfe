"""The report in a real browser: it opens without a complaint; a red cell leads to its checks."""

import shutil
from pathlib import Path

import numpy_chapter as chapters
from agreement import make
from browser_tabs import NEEDED, ON_BOTH, SIZES, fits
from hostile import TEXTS, spoil_all
from playwright.sync_api import Page as Tab
from seed_figures import put

from common.parity import main

ROOT = Path(__file__).parents[2]

pytestmark = NEEDED


def load(tab: Tab, folder: Path) -> None:
    main([str(folder)])
    tab.goto((folder / "parity.html").as_uri())


def test_a_red_cell_leads_to_the_check_that_failed(results: Path, tab: Tab) -> None:
    make(results / "float64", "jax", chapters.WrongFlattenOrder(), 2)
    load(tab, results)
    suspect = tab.locator("article")
    assert suspect.locator("h2").inner_text() == "✗ jax: fc1.weight, before step 1"
    box = suspect.locator("h2").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < SIZES["desktop"][1] / 2  # seen without scrolling
    assert tab.locator(".checks[open]").count() == 1  # open without the link, too
    (cell,) = tab.locator(".run.failed").all()
    assert "✗" in cell.inner_text()
    cell.click()
    assert tab.url.endswith("#scratch-float64-jax-2")
    target = tab.locator(":target")
    assert "jax on 2: failed" in target.inner_text()
    place = target.bounding_box()
    assert place is not None
    assert -1 < place["y"] < 100
    failed = tab.locator(".checks", has=target).locator("tr", has=tab.locator(".failed"))
    assert failed.first.is_visible()
    assert "logits before training" in failed.first.inner_text()
    failed.first.locator("a").click()
    assert "Measured by plain" in tab.locator("div", has=tab.locator(":target")).first.evaluate(
        "each => each.previousElementSibling.innerText"
    )


@ON_BOTH
def test_nothing_pushes_the_page_wider_or_is_too_small(results: Path, tab: Tab) -> None:
    put(results)
    shutil.copy(ROOT / "docs/bench-2026-11-22.json", results / "bench.json")
    load(tab, results)
    assert tab.locator(".run").count() == 12
    assert tab.locator(".run.failed").count() == 0
    assert fits(tab)
    smallest = tab.evaluate(
        """() => Math.min(...[...document.querySelectorAll('body *')]
            .filter(each => each.innerText && each.offsetParent)
            .map(each => parseFloat(getComputedStyle(each).fontSize)))"""
    )
    assert smallest >= 11
    for image in tab.locator("img").all():
        image.scroll_into_view_if_needed()
        assert image.evaluate("each => each.complete && each.naturalWidth > 0")
    passed = tab.locator("summary", has_text="pytorch on 1")
    passed.click()
    assert tab.locator(".checks[open]").locator("tr").nth(2).is_visible()


def test_a_hostile_record_does_nothing(results: Path, tab: Tab) -> None:
    for text in TEXTS.values():
        spoil_all(results, text, status="failed")
        load(tab, results)
        for summary in tab.locator("summary").all():
            if summary.is_visible():
                summary.click()
        assert tab.title().startswith("Parity: ")
        assert fits(tab)
        assert tab.locator("script").count() == 0
