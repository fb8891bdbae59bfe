"""What an explorer answers."""

import json
from typing import Any
from xml.etree import ElementTree

from notebooks.explorers.figures import answer

XMLNS = ' xmlns="http://www.w3.org/2000/svg"'


class Shown:
    """An answer as a reader sees it."""

    def __init__(self, figure: str, **choice: Any) -> None:
        given = {name: str(value) for name, value in choice.items()}
        html = answer(figure, json.dumps(given))
        self.tree = ElementTree.fromstring(
            html.replace(" hidden>", ' hidden="">').replace(XMLNS, "")
        )
        self.settled = json.loads(self.tree.attrib["data-settled"])

    def block(self, name: str) -> ElementTree.Element:
        return next(each for each in self.tree if each.get("class") == f"explorer-{name}")

    def text(self, name: str = "words") -> str:
        return "".join(self.block(name).itertext())
