"""Follows the links of a site on the disk: every file and every place in a page has to be there."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from common.base.errors import RunError

ADDRESSES: Final = ("href", "src", "poster", "data")
"""The attributes that name another file."""


class Page(HTMLParser):
    """A page's places, by id or name, and what it links to, each with its line."""

    def __init__(self) -> None:
        """Has nothing yet."""
        super().__init__()
        self.places: set[str] = set()
        self.links: list[tuple[int, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps what the tag names and what it links to."""
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value or "")
            elif name in ADDRESSES and value is not None:
                self.links.append((self.getpos()[0], value))


def read(path: Path) -> Page:
    """A page of the disk."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    return page


def broken(site: Path) -> list[str]:
    """A line for each link that leads nowhere, in the order of the pages."""
    site = site.resolve()
    pages = {path: read(path) for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site)}:{line}: {address}: {trouble}"
        for path, page in pages.items()
        for line, address in page.links
        if (trouble := wrong(address, path, site, pages))
    ]


def wrong(address: str, path: Path, site: Path, pages: dict[Path, Page]) -> str:
    """What is wrong with an address on a page; empty if nothing, or if it is another site's."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    place = unquote(parts.fragment)
    if not target.is_relative_to(site):
        return "it is outside the site"
    if not target.is_file():
        return "there is no such file"
    if place and target in pages and place not in pages[target].places:
        return "the page has no such place"
    return ""


def check(site: Path) -> None:
    """Raises RunError that names every broken link."""
    if found := broken(site):
        raise RunError(f"{len(found)} broken links: " + "; ".join(found))
    print(f"every link of {site} leads somewhere")
