"""The Chromium that tests look at pages with: one on the path, or what `CHROME_BIN` names."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")

CHROMIUM = os.environ.get("CHROME_BIN") or next(filter(None, map(shutil.which, NAMES)), None)

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
"""Width and height of the window, in pixels."""

NEEDED = pytest.mark.skipif(
    CHROMIUM is None,
    reason=f"no browser: none of {', '.join(NAMES)} is on the path, and CHROME_BIN is not set",
)
"""The mark of a test that is skipped where there is none."""
