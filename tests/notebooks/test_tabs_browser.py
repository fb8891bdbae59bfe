"""A tab fails the test of a page that complains, and prints what the page has said."""

from pathlib import Path

from browser_tabs import NEEDED
from started import ROOT, python

pytestmark = NEEDED

TESTS = """
import pytest
from explorer_page import write_page

SCRIPTS = {
    "quiet": "console.log('fine')",
    "warns": "console.warn('careful')",
    "fails": "missing()",
    "lacks": "document.write('<script src=none.js></script>')".replace("</", "<\\\\/"),
    "foreign": "new Image().src = 'http://localhost/away.png'",
}

@pytest.mark.parametrize("name", SCRIPTS)
def test_page(tab, tmp_path, name):
    tab.goto(write_page(tmp_path, f"<script>{SCRIPTS[name]}</script>"))
"""


def test_what_a_page_complains_of_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "test_pages.py"
    path.write_text(TESTS, encoding="utf-8")
    folders = f"{ROOT / 'tests'}:{ROOT / 'tests/support'}:{ROOT}"
    flags = "-c", ROOT / "pyproject.toml", "-p", "conftest"
    report = python("-m", "pytest", *flags, path, PYTHONPATH=folders).stdout
    assert "5 passed, 4 errors" in report
    for said in ("careful", "missing is not defined", "none.js", "http://localhost/away.png"):
        assert said in report
