"""A reader's own record of a pipeline: the passes of its run, as they were measured."""

import json
from itertools import chain
from math import inf
from typing import Any, Final

from common.drawing.plans import TITLES
from common.parallel.pipelines import Pass, TimedPass, order

DEVICES, MICROBATCHES = range(1, 17), range(1, 65)
"""What is drawn."""

REFUSAL: Final = (
    "This file is no record of a pipeline with its passes. Open the JSON file of a run with "
    f"--strategy pipeline, without --native and --replicas, on at most {DEVICES[-1]} devices with "
    f"at most {MICROBATCHES[-1]} microbatches."
)


def opened(content: str) -> tuple[dict[str, Any], list[TimedPass], str]:
    """The plan of a run, by control, its passes in milliseconds, the earliest first, or a refusal.

    Of no content there is none of them.
    """
    try:
        return *_read(json.loads(content)), ""
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        return {}, [], REFUSAL * bool(content)


def _read(record: Any) -> tuple[dict[str, Any], list[TimedPass]]:
    config, options = record["config"], record["config"]["options"]
    devices, schedule = config["devices"], options["schedule"]
    events = [
        TimedPass(
            Pass(each["device"], each["microbatch"], each["what"]),
            1000 * float(each["begin"]),
            1000 * float(each["end"]),
        )
        for each in record["split"]["events"]
    ]
    events.sort(key=lambda event: event.begin)
    microbatches = 1 + max(event.done.microbatch for event in events)
    if (
        (options["strategy"], options["replicas"]) != ("pipeline", 1)
        or (devices not in DEVICES or microbatches not in MICROBATCHES or schedule not in TITLES)
        or not all(0 <= event.begin < event.end < inf for event in events)
        or sorted(event.done for event in events)
        != sorted(chain(*order(schedule, devices, microbatches)))
    ):
        raise ValueError("other passes, or too many")
    return {"devices": devices, "microbatches": microbatches, "schedule": schedule}, events
