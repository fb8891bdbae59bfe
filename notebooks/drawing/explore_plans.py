"""The explorers: figures in which a reader changes a plan. `docs/_static/explore-*.js` draw them.

Below the plan of a pipeline stands a real run: one that the page has, or a reader's own record.
"""

import json
from collections.abc import Callable
from typing import Final

from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.drawing.plans import memory as memory_picture, timelines, who_has_what
from common.plan import OPTIMIZERS, PRECISIONS, Scenario
from common.terminal.values import WIDTH
from notebooks.drawing.explore_rounds import rounds
from notebooks.drawing.explorers import LABELS, buttons, choice, count, figure, slider
from notebooks.drawing.pipeline_runs import RUNS

NETS: Final = {"lenet": "LeNet", "resnet18": "ResNet-18", "dense": "dense layers"}

CARDS: Final = (8, 16, 24, 40, 80, 141)
"""What cards have, in GB."""

MEMORY: Final = """<div class="explorer-stage"></div>
<p class="explorer-legend"></p>
<div class="explorer-scrolled explorer-traffic" tabindex="0" role="group" aria-label="Sent"></div>
<div class="explorer-scrolled explorer-comparison" tabindex="0" role="group"
 aria-label="Every strategy"></div>
<details class="explorer-exact"><summary>Every number, to the byte</summary>
<div class="explorer-scrolled explorer-numbers" tabindex="0" role="group" aria-label="Numbers">
</div></details>"""

ORDERS: Final = {
    "naive": "naive",
    "gpipe": "GPipe",
    "1f1b": "1F1B",
    "interleaved": "interleaved 1F1B",
}

BESIDE: Final = {"nothing": "nothing", **LABELS, "own": "a record of your own"}

TIMES: Final = {"measured": "as measured", "alone": "as if each device had cores of its own"}

LEGEND: Final = (
    "A row is a device; a box is a pass, with the number of its microbatch. Forward passes are "
    "blue and stand high, backward passes are orange and stand low; a darker box is of the second "
    "stage of its device. Dashed boxes come after this step. A thick outline: the pass of this "
    "step. Thin ones, with lines: what it needs. Live: passed forward, not yet back, so that its "
    "inputs wait in memory; it counts once for each stage in which it waits."
)

PIPELINE: Final = f"""<div class="explorer-shown">
<div class="explorer-stage" tabindex="0" role="group" aria-label="Plan. Arrow keys step"></div>
<p class="explorer-told"></p>
<p class="explorer-refused"></p>
<div class="explorer-run" hidden>
<p class="explorer-about"></p>
<div class="explorer-stage" tabindex="0" role="group" aria-label="Run. Arrow keys step"></div>
<ul class="explorer-differences"></ul>
</div>
<div class="explorer-tables">
<div class="explorer-sums"></div>
<div class="explorer-devices"></div>
</div>
<p class="explorer-theory"></p>
<p class="explorer-key">{LEGEND}</p>
</div>
<p class="explorer-row"><label>a record of your own <input type="file" accept=".json"></label></p>
<p class="explorer-key">It is read in this browser and goes nowhere.
<span class="explorer-opened" role="status"></span></p>"""

KINDS: Final = {"all": "all three"} | {name: name for name in ("weights", "gradients", "momentum")}

SHARDS: Final = """<p class="explorer-sent"></p>
<div class="explorer-stage" tabindex="0" role="group" aria-label="Arrow keys step"></div>
<p class="explorer-legend"></p>
<p class="explorer-key"></p>"""


def memory(assets: str) -> str:
    """What each device keeps and sends, as HTML; `assets` is the folder of the scripts."""
    start = Scenario()
    cards = {str(each): f"{each} GB" for each in CARDS} | {"other": "other"}
    return figure(
        "memory",
        "What each device keeps and sends",
        assets,
        still=memory_picture(start.devices, start.examples, *STRATEGIES),
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
        body=MEMORY,
    )


def pipeline(assets: str) -> str:
    """The passes of a pipeline and of a real run, as HTML."""
    controls = [
        [
            count("stages", 4, 1, 16, label="devices"),
            count("microbatches", 8, 1, 64),
            choice("schedule", ORDERS, "1f1b"),
            count("forward", 1, 0.5, 8, label="forward takes", step=0.5),
            count("backward", 2, 0.5, 8, label="backward takes", step=0.5),
        ],
        [
            choice("beside", BESIDE, "nothing", "beside it"),
            choice("times", TIMES, "measured", "times of the run"),
        ],
        [slider("step", 4096, 4096)],
        buttons("play"),
    ]
    return figure(
        "pipeline",
        "A pipeline, pass by pass",
        assets,
        still=timelines(4, 4),
        controls=controls,
        body=PIPELINE,
        data={"runs": json.loads(RUNS.read_text(encoding="utf-8"))},
    )


def shards(assets: str) -> str:
    """Which device has which shard at each moment of a step, as HTML."""
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
        body=SHARDS,
    )


EXPLORERS: Final[dict[str, Callable[[str], str]]] = {
    "pipeline": pipeline,
    "memory": memory,
    "shards": shards,
    "rounds": rounds,
}
"""By name: the figure as HTML, given the address of the folder that has its scripts."""
