"""Links of a text of the repository, as links between pages of the site.

Texts link to files: they can be read where they are. On the site, a file of `docs/` and a chapter
are pages, and so is each other file that a page links to.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from notebooks.text.chapter import CHAPTERS, SHARED, TEXTS
from notebooks.text.sources import ROOT

DOCS: Final = ROOT / "docs"

SOURCES: Final = "sources"
"""The folder of pages that show a file of the repository."""

LINK: Final = re.compile(r"(!?\[[^\]]*\]\()([^()\s#]+)((?:#[^()\s]*)?\))")
"""A link to a file: what comes before its address, the address, and the rest."""

POSITIONS: Final = {ROOT / "notebooks", TEXTS, *(ROOT / "notebooks" / each for each in FRAMEWORKS)}
"""Where a text may suppose another chapter to be: each notebook has its own place."""


def relinked(text: str, folder: Path, page: str) -> str:
    """The text of a file in `folder`, with the links that it needs as the page of this name."""

    def changed(found: re.Match[str]) -> str:
        return found[1] + _address(found[2], folder, page) + found[3]

    return _outside_fences(text, lambda part: LINK.sub(changed, part))


def linked_files(text: str, folder: Path) -> Iterator[Path]:
    """The files that a text links to and that get a page only because it does."""
    for found in LINK.finditer(text):
        target = _target(found[2], folder)
        if target and (_page_of(target) or "").startswith(f"{SOURCES}/"):
            yield target


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    """The text, changed where it is no block of code."""
    parts = re.split(r"(^(`{3,})[^\n]*\n.*?^\2`*$)", text, flags=re.MULTILINE | re.DOTALL)
    # Of three parts one is the text before a block, one the block, and one its fence.
    return "".join(
        change(part) if number % 3 == 0 else part
        for number, part in enumerate(parts)
        if number % 3 != 2
    )


def _target(address: str, folder: Path) -> Path | None:
    """The file that an address names; None if it is an address in the web."""
    if re.match(r"[a-z][a-z0-9+.-]*:", address):
        return None
    return Path(os.path.normpath(folder / address))


def _page_of(target: Path) -> str | None:
    """The name of the page for a file; None if it has none, as a picture in `docs/`."""
    if target.parent in POSITIONS and target.stem in {*CHAPTERS, SHARED}:
        return f"chapters/{target.stem}"
    if target == ROOT / "README.md":
        return "index"
    if target.is_relative_to(DOCS):
        return str(target.relative_to(DOCS).with_suffix("")) if target.suffix == ".md" else None
    if target.is_relative_to(ROOT) and target.is_file():
        return f"{SOURCES}/{target.relative_to(ROOT)}"
    return None


def _address(address: str, folder: Path, page: str) -> str:
    """What the page links to in place of `address`; itself if that is nothing of the project."""
    target = _target(address, folder)
    if target is None:
        return address
    name = _page_of(target)
    if name is None and not target.is_file():
        return address  # Sphinx complains of it, and names the line
    found = DOCS / f"{name}.md" if name else target
    return os.path.relpath(found, (DOCS / page).parent)
