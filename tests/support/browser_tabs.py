"""A Chromium, and tabs of it that fail a test if their page complains: fixtures of all tests."""

from collections.abc import Iterator

import pytest
from chromium import CHROMIUM, FLAGS, SIZES
from playwright.sync_api import Browser, Page, sync_playwright


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(params=list(SIZES.values()), ids=list(SIZES))
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A tab, as large as a desktop's and as a phone's.

    The test fails if the page complains, asks something or fetches anything from elsewhere.
    """
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height})
    opened, complaints, requests = context.new_page(), [], []
    opened.on("console", lambda message: complaints.append((message.type, message.text)))
    opened.on("pageerror", lambda error: complaints.append(("error", str(error))))
    opened.on("dialog", lambda dialog: complaints.append(("dialog", dialog.message)))
    opened.on("request", lambda request: requests.append(request.url[:50]))
    yield opened
    context.close()
    assert [each for each in complaints if each[0] != "log"] == []
    assert [each for each in requests if not each.startswith(("file:", "data:"))] == []
