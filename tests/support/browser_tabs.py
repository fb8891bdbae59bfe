"""A Chromium for all tests, and tabs of it that fail a test if their page complains."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROME_BIN") or next(filter(None, map(shutil.which, NAMES)), None)
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}  # pixels
NEEDED = pytest.mark.skipif(
    CHROMIUM is None,
    reason=f"no browser: none of {', '.join(NAMES)} is on the path, and CHROME_BIN is not set",
)
ON_BOTH = pytest.mark.parametrize("tab", SIZES, indirect=True)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield started
        started.close()


@pytest.fixture
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A tab of a desktop's size, or of the size that the test names.

    The test fails if the page complains, asks something or fetches anything from elsewhere.
    """
    width, height = SIZES[getattr(request, "param", "desktop")]
    context = browser.new_context(viewport={"width": width, "height": height})
    page, complaints, requests = context.new_page(), [], []
    page.on("console", lambda message: complaints.append((message.type, message.text)))
    page.on("pageerror", lambda error: complaints.append(("error", str(error))))
    page.on("request", lambda request: requests.append(request.url[:50]))
    yield page
    context.close()
    assert [entry for entry in complaints if entry[0] != "log"] == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def fits(tab: Page) -> bool:
    """Whether the page is no wider than the window."""
    width: int = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
    return width <= 0
