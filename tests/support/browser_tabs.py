"""A Chromium, and tabs of it that fail a test if their page complains."""

from collections.abc import Iterator
from contextlib import contextmanager

from chromium import CHROMIUM, FLAGS
from playwright.sync_api import Browser, Page, sync_playwright


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@contextmanager
def watched(browser: Browser, size: tuple[int, int]) -> Iterator[Page]:
    """A tab of this width and height, in pixels.

    The test fails if the page complains, asks something or fetches anything from elsewhere.
    """
    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
    opened, complaints, requests = context.new_page(), [], []
    opened.on("console", lambda message: complaints.append((message.type, message.text)))
    opened.on("pageerror", lambda error: complaints.append(("error", str(error))))
    opened.on("dialog", lambda dialog: complaints.append(("dialog", dialog.message)))
    opened.on("request", lambda request: requests.append(request.url[:50]))
    yield opened
    context.close()
    assert [each for each in complaints if each[0] != "log"] == []
    assert [each for each in requests if not each.startswith(("file:", "data:"))] == []
