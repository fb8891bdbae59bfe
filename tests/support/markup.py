"""Reads the report's page as far as tests need it."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from common.compare.folder import examine, verdict_on
from common.report.page import page

VOID = {"meta", "img"}


class Page(HTMLParser):
    """The tags of a page with their attributes, its text, and the text of each `article`."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.articles: list[str] = []
        self.text = ""
        self._within: list[str] = []
        self.feed(html)
        self.close()
        assert self._within == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._within.append(tag)
        if tag == "article":
            self.articles.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._within.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._within:
            return
        words = " ".join(data.split(" ")).replace("\n", " ")
        self.text += words
        if "article" in self._within:
            self.articles[-1] += words

    def values(self, attribute: str) -> list[str]:
        """The values of an attribute, wherever it stands."""
        return [attributes[attribute] for _, attributes in self.tags if attribute in attributes]


def shown(folder: Path, **chosen: Any) -> Page:
    """The page on the records in `folder`."""
    examined = examine(folder, **chosen)
    return Page(page(verdict_on(examined), examined))
