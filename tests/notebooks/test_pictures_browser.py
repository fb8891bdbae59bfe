"""The pictures in a real browser: every text is where it belongs, on a desktop and a phone."""

from pathlib import Path

from browser_tabs import NEEDED, ON_BOTH, fits
from playwright.sync_api import Page as Tab
from stepper_page import spilled, written

from common.parallel.schedules import SCHEDULES
from notebooks.drawing import pictures

pytestmark = NEEDED


@ON_BOTH
def test_no_text_of_a_picture_leaves_its_place(tab: Tab, tmp_path: Path) -> None:
    drawn = [pictures.three_splits(), *(pictures.data_parallelism(k) for k in (2, 4))]
    drawn += [pictures.allreduce(name, k) for name in SCHEDULES for k in (3, 4, 5, 8)]
    for picture in drawn:
        tab.goto(written(tmp_path, picture).as_uri())
        assert tab.locator("svg text").count() > 5
        assert fits(tab)
        assert spilled(tab) == []
