"""What an explorer answers, and a record that it reads."""

import json
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import Event
from common.parallel.pipelines import order, simulate
from common.records.record import Record, Split
from common.settings.config import Config
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

    def rows(self, name: str) -> list[list[str]]:
        """The cells of all tables of a block, without headings of columns."""
        rows = self.block(name).iterfind(".//tbody/tr")
        return [["".join(cell.itertext()) for cell in row] for row in rows]


def a_record(schedule: str) -> dict[str, Any]:
    """What a figure reads of a record of a run whose passes last a second each."""
    options = StrategiesOptions("pipeline", microbatches=5, schedule=schedule)
    events = [
        Event(p.stage, p.name().split()[0], p.microbatch, begin, end)
        for p, begin, end in simulate(order(schedule, 3, 5))
    ]
    assert {"devices", "device_kind", "options"} <= Config.model_fields.keys()
    assert {"framework", "config", "split"} <= Record.model_fields.keys()
    assert "events" in Split.model_fields
    return {
        "framework": "jax",
        "config": {"devices": 3, "device_kind": "cpu", "options": asdict(options)},
        "split": {"events": [asdict(each) for each in events]},
    }
