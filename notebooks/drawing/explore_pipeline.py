"""The explorer of pipelines, pass by pass: `docs/_static/explore-pipeline.js` draws it.

Below the plan it draws a real run: one that the page has, or a reader's own record.
"""

import json
from typing import Final

from common.drawing.timelines import timelines
from notebooks.drawing.explorers import LABELS, buttons, choice, count, figure, slider
from notebooks.drawing.pipeline_runs import RUNS

SCHEDULES: Final = {
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

BODY: Final = f"""<div class="explorer-shown">
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


def fragment(assets: str = "_static") -> str:
    """The figure as HTML; `assets` is the address of the folder that has its scripts."""
    controls = [
        [
            count("stages", 4, 1, 16, label="devices"),
            count("microbatches", 8, 1, 64),
            choice("schedule", SCHEDULES, "1f1b"),
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
        body=BODY,
        data={"runs": json.loads(RUNS.read_text(encoding="utf-8"))},
    )
