"""A Chromium for all tests, and tabs of it that fail a test if their page complains."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROME_BIN") or next(filter(None, map(shutil.which, NAMES)), None)
SIZES = ViewportSize(width=1280, height=900), ViewportSize(width=390, height=844)
"""In pixels, of a desktop and of a phone."""
NEEDED = pytest.mark.skipif(
    CHROMIUM is None,
    reason=f"no browser: none of {', '.join(NAMES)} is on the path, and CHROME_BIN is not set",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield started
        started.close()


class Handler(SimpleHTTPRequestHandler):
    """Prints nothing; the browser reads a file again whenever it is asked for."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address by HTTP of the folder of all temporary folders."""
    folder = tmp_path_factory.getbasetemp()
    (folder / "favicon.ico").touch()  # a browser asks for it by itself
    handler = partial(Handler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextmanager
def watched(browser: Browser, base_url: str) -> Iterator[Page]:
    """A tab. Raises AssertionError if its page complains or fetches anything from elsewhere."""
    context = browser.new_context(base_url=base_url, viewport=SIZES[0])
    page, complaints, requests = context.new_page(), [], []
    page.on("console", lambda said: complaints.append((said.type, said.text, said.location["url"])))
    page.on("pageerror", lambda error: complaints.append(("error", str(error), page.url)))
    page.on("request", lambda request: requests.append(request.url[:50]))
    yield page
    context.close()
    assert [url for url in requests if not url.startswith((base_url, "data:"))] == []
    assert [entry for entry in complaints if entry[0] != "log"] == []


@pytest.fixture
def tab(browser: Browser, base_url: str) -> Iterator[Page]:
    """A watched tab of a desktop's size."""
    with watched(browser, base_url) as page:
        yield page


def fits(tab: Page) -> bool:
    """Whether the page is no wider than the window."""
    width: int = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
    return width <= 0
