"""Runs of pipelines to draw beside a plan: those that the site has, and a reader's own record.

Times are in milliseconds.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import Final

from common.parallel.pipelines import Pass, TimedPass, order

RUNS: Final = Path(__file__).parents[2] / "docs" / "pipeline-runs.json"

LABELS: Final = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX", "mxnet": "MXNet"}
"""The frameworks' names in their own spelling."""

QUEUED: Final = ("jax", "mxnet")
"""Frameworks that queue their work also on CPUs."""

MOST: Final = 16, 64
"""Stages and microbatches that are drawn."""


@dataclass(frozen=True)
class TimedRun:
    """The passes of a run, the earliest first; `queued`: a time is that of a call."""

    name: str
    schedule: str
    stages: int
    microbatches: int
    queued: bool
    events: Sequence[TimedPass]
    about: str = ""

    def passes(self) -> list[list[Pass]]:
        """The passes of each device, in order."""
        done = [event.done for event in self.events]
        return [[each for each in done if each.stage == stage] for stage in range(self.stages)]


@cache
def kept() -> dict[tuple[str, str], TimedRun]:
    """The runs of the site, by framework and schedule."""
    runs = {}
    for run in json.loads(RUNS.read_text(encoding="utf-8")):
        name, schedule = run["framework"], run["schedule"]
        events = [
            TimedPass(Pass(d, m, f == 1), begin, end) for d, f, m, begin, end in run["events"]
        ]
        sizes = run["stages"], run["microbatches"]
        made = TimedRun(LABELS[name], schedule, *sizes, name in QUEUED, events, run["about"])
        runs[name, schedule] = made
    return runs


def opened(content: str) -> TimedRun | None:
    """The run of a record; None if it is no record of one pipeline, whole."""
    try:
        return _read(content)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None


def _read(content: str) -> TimedRun | None:
    record = json.loads(content)
    config, framework = record["config"], record["framework"]
    options, stages = config["options"], config["devices"]
    events = [
        TimedPass(
            Pass(each["device"], each["microbatch"], each["what"] == "forward"),
            1000 * float(each["begin"]),
            1000 * float(each["end"]),
        )
        for each in record["split"]["events"]
    ]
    events.sort(key=lambda event: event.begin)
    count = 1 + max(event.done.microbatch for event in events)
    one = (options["strategy"], options["replicas"]) == ("pipeline", 1)
    if not one or stages > MOST[0] or count > MOST[1]:
        return None
    planned = [each for passes in order(options["schedule"], stages, count) for each in passes]
    if sorted(event.done for event in events) != sorted(planned):
        return None
    if not all(0 <= event.begin <= event.end < inf for event in events):
        return None
    queued = config["device_kind"] != "cpu" or framework in QUEUED
    name = f"your run in {LABELS[framework]}" if framework in LABELS else "your run"
    return TimedRun(name, options["schedule"], stages, count, queued, events)


def differences(plan: Sequence[Sequence[Pass]], run: TimedRun) -> list[str]:
    """How a run differs from the plan, in sentences."""
    pairs = enumerate(zip(plan, run.passes(), strict=True))
    others = [str(device) for device, (planned, done) in pairs if list(planned) != done]
    said = ["Each device’s order of passes is exactly the plan’s."]
    if others:
        said = [f"The order of passes is not the plan’s on device {', '.join(others)}."]
    following = zip(run.events, run.events[1:], strict=False)
    if run.stages > 1 and all(after.begin >= before.end for before, after in following):
        said.append(
            "As measured, no two passes overlap: one process does or queues them, one after the "
            "other."
        )
    said.append(
        "These devices queue their work: a box is the time of the call, not of the work."
        if run.queued
        else "A box is the time of a pass."
    )
    return said
