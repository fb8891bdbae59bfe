"""The explorer of memory and traffic: `docs/_static/explore-memory.js` draws it."""

from typing import Final

from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.drawing.timelines import memory
from common.parallel.scenarios import OPTIMIZERS, PRECISIONS, Scenario
from common.terminal.values import WIDTH
from notebooks.drawing.explorers import choice, count, figure

NETS: Final = {"lenet": "LeNet", "resnet18": "ResNet-18", "dense": "dense layers"}

CARDS: Final = (8, 16, 24, 40, 80, 141)
"""What cards have, in GB."""

BODY: Final = """<div class="explorer-stage"></div>
<p class="explorer-legend"></p>
<div class="explorer-scrolled explorer-traffic" tabindex="0" role="group" aria-label="Sent"></div>
<div class="explorer-scrolled explorer-comparison" tabindex="0" role="group"
 aria-label="Every strategy"></div>
<details class="explorer-exact"><summary>Every number, to the byte</summary>
<div class="explorer-scrolled explorer-numbers" tabindex="0" role="group" aria-label="Numbers">
</div></details>"""


def fragment(assets: str = "_static") -> str:
    """The figure as HTML; `assets` is the address of the folder that has its scripts."""
    start = Scenario()
    cards = {str(each): f"{each} GB" for each in CARDS} | {"other": "other"}
    return figure(
        "memory",
        "What each device keeps and sends",
        assets,
        still=memory(start.devices, start.examples, *STRATEGIES),
        controls=[
            [
                choice("net", NETS, start.net),
                count("depth", start.depth, 0, 12, label="more layers"),
                count("width", start.width, 1, WIDTH),
                count("millions", start.parameters // 10**6, 1, 10**6, label="millions of weights"),
                count("layers", start.layers, 1, 100),
            ],
            [
                choice("strategy", list(STRATEGIES), start.strategy),
                count("devices", start.devices, 1, 64),
                count("replicas", start.replicas, 1, 64),
                count("microbatches", start.microbatches, 1, 64),
                choice("schedule", list(SCHEDULES), start.schedule),
            ],
            [
                count("examples", start.examples, 1, 65536),
                choice("precision", list(PRECISIONS), start.precision),
                choice("optimizer", list(OPTIMIZERS), start.optimizer),
                choice("card", cards, "24"),
                count("gigabytes", 24, 0.001, 10000, label="GB", step="any"),
            ],
        ],
        body=BODY,
    )
