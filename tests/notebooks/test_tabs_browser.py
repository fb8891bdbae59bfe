"""A tab fails the test of a page that complains."""

from pathlib import Path

import pytest
from browser_tabs import NEEDED, watched
from explorer_page import write_page
from playwright.sync_api import Browser

pytestmark = NEEDED

SCRIPTS = {
    "careful": "console.warn('careful')",
    "missing is not defined": "missing()",
    "none.js": "document.write('<script src=none.js></' + 'script>')",
    "http://localhost/away.png": "new Image().src = 'http://localhost/away.png'",
}
"""By what the page complains of."""


@pytest.mark.parametrize("complaint", SCRIPTS)
def test_what_a_page_complains_of_fails(
    complaint: str, browser: Browser, base_url: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=complaint), watched(browser, base_url) as tab:
        tab.goto(write_page(tmp_path, f"<script>{SCRIPTS[complaint]}</script>"))
