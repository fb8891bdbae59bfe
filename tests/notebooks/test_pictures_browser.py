"""The pictures in a real browser: every text is where it belongs, on a desktop and a phone.

Needs a Chromium on the path, or `CHROME_BIN` that names one.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from chromium import NEEDED
from playwright.sync_api import Page as Tab
from stepper_page import fits, spilled, written

from common.parallel.schedules import SCHEDULES
from notebooks.drawing import pictures

PICTURES: dict[str, Callable[[], str]] = {
    "splits": pictures.three_splits,
    "data-2": pictures.data_parallelism,
    "data-4": partial(pictures.data_parallelism, 4),
    **{f"{name}-{k}": partial(pictures.allreduce, name, k) for name in SCHEDULES for k in (3, 4)},
    **{f"{name}-{k}": partial(pictures.allreduce, name, k) for name in SCHEDULES for k in (5, 8)},
}

pytestmark = NEEDED


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_of_a_picture_leaves_its_place(name: str, tab: Tab, tmp_path: Path) -> None:
    tab.goto(written(tmp_path, PICTURES[name]()).as_uri())
    assert tab.locator("svg text").count() > 5
    assert fits(tab)
    assert spilled(tab) == []
