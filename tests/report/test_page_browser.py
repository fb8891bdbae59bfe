"""The report in a real browser: it opens without a complaint, and says first what is wrong."""

from pathlib import Path

import numpy_chapter as chapters
from agreement import make
from browser_tabs import NEEDED, ON_BOTH, fits
from playwright.sync_api import Page as Tab

from common.parity import main

pytestmark = NEEDED


@ON_BOTH
def test_the_page_shows_first_what_is_wrong_and_leads_to_it(results: Path, tab: Tab) -> None:
    make(results / "float64", "jax", chapters.WrongFlattenOrder(), 2)
    main([str(results)])
    tab.goto((results / "parity.html").as_uri())
    suspect = tab.locator("article")
    assert suspect.locator("h2").inner_text() == "✗ jax: fc1.weight, before step 1"
    box = suspect.locator("h2").bounding_box()
    assert box is not None
    assert box["y"] < 450  # seen without scrolling
    assert fits(tab)
    suspect.locator("a").first.click()
    assert tab.url.endswith("#scratch-float64")
    assert tab.locator("td.failed").first.is_visible()
    for image in tab.locator("img").all():
        image.scroll_into_view_if_needed()
        assert image.evaluate("each => each.complete && each.naturalWidth > 0")
