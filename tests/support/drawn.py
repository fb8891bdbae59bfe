"""Reads the pictures of the chapters as far as tests need it."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

SVG = "{http://www.w3.org/2000/svg}"


def of_class(tree: Element, name: str) -> Iterator[Element]:
    """What plays a part, in its order."""
    for each in tree.iter():
        if f"pic-{name}" in each.get("class", "").split():
            yield each


def texts(tree: Element) -> list[str]:
    return [each.text or "" for each in tree.iter(f"{SVG}text")]
