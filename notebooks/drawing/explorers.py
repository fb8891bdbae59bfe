"""The explorers: figures in which a reader changes a plan, or steps through an allreduce.

`templates/` has their controls. Their scripts, `docs/_static/explore-*.js`, compute the same as
`common/parallel`. Without scripts a reader sees a picture.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from common.chapters.strategies import SCHEDULES
from common.drawing.theme import style
from common.parallel.nets import RECOMPUTE
from common.parallel.schedules import SCHEDULES as ALLREDUCES, Schedule
from common.scaling.scenario import OPTIMIZERS, PRECISIONS, Scenario
from common.scaling.steps import CARDS, LINKS
from common.terminal.values import WIDTH
from notebooks.drawing.frames import Frame, frames, gaps, words
from notebooks.drawing.pictures import allreduce, memory_over_time, timelines, who_has_what
from notebooks.drawing.pipeline_runs import RUNS

LABELS: Final = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX", "mxnet": "MXNet"}
"""The frameworks' names in their own spelling."""

STRATEGIES: Final = ("data", "pipeline", "tensor", "zero1", "zero2", "zero3")
"""The strategies that the scripts plan."""

DEVICES: Final = range(2, 17)
"""The numbers of devices of an allreduce to choose from."""

START: Final = {"memory": Scenario(), "shards": Scenario(strategy="zero3")}
"""The plan that a reader sees first."""

STILL: Final = {
    "pipeline": partial(timelines, 4, 4),
    "memory": partial(memory_over_time, *STRATEGIES),
    "shards": partial(who_has_what, START["shards"].strategy, START["shards"].devices),
    "rounds": partial(allreduce, "ring", 4),
}
"""By name of an explorer: the picture shown without scripts."""


def explorer(name: str, assets: str) -> str:
    """An explorer as HTML; `assets` is the address of the folder that has its scripts."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment.get_template(f"{name}.html").render(
        name=name,
        assets=assets,
        style=style(),
        still=STILL[name](),
        data=data(name),
        start=START.get(name),
        labels=LABELS,
        strategies=list(STRATEGIES),
        schedules=list(SCHEDULES),
        precisions=list(PRECISIONS),
        recompute=RECOMPUTE,
        optimizers=list(OPTIMIZERS),
        max_width=WIDTH,
    )


def data(name: str) -> dict[str, Any]:
    """Data that an explorer's script cannot compute: runs, frames of allreduces, hardware."""
    if name == "memory":
        return {"cards": CARDS, "links": LINKS}
    if name == "pipeline":
        return {"runs": json.loads(RUNS.read_text(encoding="utf-8"))}
    if name == "rounds":
        return {
            algorithm: {str(k): _rounds(schedule(k)) for k in DEVICES}
            for algorithm, schedule in ALLREDUCES.items()
        }
    return {}


def _rounds(schedule: Schedule) -> dict[str, Any]:
    """One allreduce: its chunks, the lanes of arrows below each, and the frames."""
    moments = frames(schedule)
    data = [_frame(frame, words(schedule, number)) for number, frame in enumerate(moments)]
    return {"chunks": schedule.chunks, "gaps": gaps(schedule, moments), "frames": data}


def _frame(frame: Frame, text: str) -> dict[str, Any]:
    """One frame. A message is source, target, first chunk, lane, then the target's new sums.

    There is a sum for each chunk of the message, as a number whose bit d stands for device d.
    """
    messages = [
        [t.source, t.target, t.chunks.start, lane, *(frame.held[t.target][i] for i in t.chunks)]
        for t, lane in zip(frame.transfers, frame.lanes, strict=True)
    ]
    adds = all(t.adds for t in frame.transfers)
    return {"words": text, "sent": frame.busiest, "adds": adds, "messages": messages}
