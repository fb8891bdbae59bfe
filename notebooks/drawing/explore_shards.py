"""The explorer of shards: `docs/_static/explore-shards.js` draws it."""

from typing import Final

from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.drawing.parts import who_has_what
from common.parallel.scenarios import Scenario
from notebooks.drawing.explorers import buttons, choice, count, figure, slider

KINDS: Final = {"all": "all three"} | {name: name for name in ("weights", "gradients", "momentum")}

BODY: Final = """<p class="explorer-sent"></p>
<div class="explorer-stage" tabindex="0" role="group" aria-label="Arrow keys step"></div>
<p class="explorer-legend"></p>
<p class="explorer-key"></p>"""


def fragment(assets: str = "_static") -> str:
    """The figure as HTML; `assets` is the address of the folder that has its scripts."""
    start = Scenario(strategy="zero3")
    return figure(
        "shards",
        "Which device has what, moment by moment",
        assets,
        still=who_has_what(start.strategy, start.devices),
        controls=[
            [
                choice("strategy", list(STRATEGIES), start.strategy),
                count("depth", start.depth, 0, 4, label="more layers"),
                count("devices", start.devices, 1, 8),
                count("replicas", start.replicas, 1, 8),
                count("microbatches", start.microbatches, 1, 4),
                choice("schedule", list(SCHEDULES), start.schedule),
                choice("what", KINDS, "all"),
            ],
            buttons(),
            [slider("moment", 0, 1000)],
        ],
        body=BODY,
    )
