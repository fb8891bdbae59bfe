"""What an explorer answers, and what it reads of a record."""

import json
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

    def text(self, name: str = "words") -> str:
        block = next(each for each in self.tree if each.get("class") == f"explorer-{name}")
        return "".join(block.itertext())


def a_record() -> str:
    """The parts of a record that an explorer reads; a pipeline's passes take a second each."""
    timed = simulate(order("gpipe", 3, 5), lambda _: 1)
    events = [Event(p.stage, p.name().split()[0], p.microbatch, *when) for p, *when in timed]
    options = StrategiesOptions("pipeline", microbatches=5, schedule="gpipe")
    config = Config.model_construct(devices=3, options=options)
    split = Split.model_construct(events=events)
    return Record.model_construct(config=config, split=split).model_dump_json(indent=1)
