"""Pages with explorers or a picture in them."""

import shutil
from pathlib import Path

import pytest
from browser_tabs import CHROMIUM

from notebooks.explorers.figures import explorer
from notebooks.web import runtime

ASSETS = Path(__file__).parents[2] / "docs/_static"

LIVE = pytest.mark.skipif(
    CHROMIUM is None or not runtime.is_there(),
    reason="no browser, or no Pyodide: `python -m notebooks.web.runtime` fetches it",
)
"""For tests of pages that load Python."""


def write_page(folder: Path, content: str) -> str:
    """The address of a new page with this content, in a temporary folder beside the assets."""
    shutil.copytree(ASSETS, folder / "assets", dirs_exist_ok=True)
    (folder / "page.html").write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>page</title>'
        '<meta name="viewport" content="width=device-width">'
        '<link rel="stylesheet" href="assets/pictures.css">'
        f'<body style="margin:16px">{content}</body></html>',
        encoding="utf-8",
    )
    return f"{folder.name}/page.html"


def page_of(folder: Path, *names: str, more: str = "") -> str:
    """The address of a page with explorers in it."""
    page = write_page(folder, "".join(explorer(name, "assets") for name in names) + more)
    runtime.bring(folder / "assets")
    return page
