"""A pipeline: when each device passes which microbatch, and how long it waits, by plan or record.

A record is a reader's own, with the passes of a run as they were measured.
"""

import json
from itertools import chain
from math import inf
from typing import Any, Final

from common.drawing import plans
from common.drawing.plans import TITLES
from common.parallel.pipelines import UNITS, Pass, TimedPass, bubble, order, simulate
from notebooks.explorers.forms import Choice, Control, Form, answer, values

TITLE: Final = "A pipeline"

DEVICES, MICROBATCHES = range(1, 17), range(1, 65)
"""What is drawn."""

FORM: Final[Form] = [
    [
        Control("devices", 4, DEVICES),
        Control("microbatches", 8, MICROBATCHES),
        Control("schedule", "1f1b", TITLES),
        Control("forward", 1, range(1, 9), "forward takes"),
        Control("backward", 2, range(1, 9), "backward takes"),
    ]
]

FILE: Final = "your own record"

KEY: Final = """Of p devices and m microbatches, the bubble is (p − 1) / (m + p − 1), in the naive
order (p − 1) / p, however long a pass takes. In ZB-H1, a backward pass has two halves of equal
length, the gradient of the input and of the weights. In flight: passed forward, not yet back with
all gradients, so that inputs are kept."""

REFUSAL: Final = (
    "This file is no record of a pipeline with its passes. Open the JSON file of a run with "
    f"--strategy pipeline, without --native and --replicas, on at most {DEVICES[-1]} devices with "
    f"at most {MICROBATCHES[-1]} microbatches."
)


def figure(choice: Choice) -> str:
    chosen, (planned, run, refused) = values(FORM, choice), opened(choice.get("record", ""))
    if choice.get("opened"):
        chosen |= planned
    p, m, schedule = (chosen[name] for name in ("devices", "microbatches", "schedule"))
    passes = order(schedule, p, m)
    half, forward = chosen["backward"] / UNITS["backward"], chosen["forward"]
    events = simulate(passes, lambda one: forward if one.forward else half * UNITS[one.kind])
    end, waits = max(event.end for event in events), 100 * bubble(events, p)
    words = f"The step takes {end:g} units of time. The bubble is {waits:.1f}\u00a0% of it."
    blocks = [plans.lanes(TITLES[schedule], p, events, end)]
    if run:
        done = sorted((event.done for event in run), key=lambda one: one.stage)
        same = "" if done == [*chain(*passes)] else "not "
        words += f" Below: your run. Its order of passes is {same}the plan’s."
        name, longest = TITLES[planned["schedule"]], max(event.end for event in run)
        blocks.append(plans.lanes(f"Your run: {name}", planned["devices"], run, longest, "ms"))
    blocks.append(plans.passes([*events, *run]))
    drawn = plans.stacked(f"{TITLE}: {TITLES[schedule]}", words, *blocks)
    return answer(chosen, words=f"{words} {refused}".strip(), stage=drawn, key=KEY)


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
    events = []
    for each in sorted(record["split"]["events"], key=lambda each: float(each["begin"])):
        done = Pass(each["device"], each["microbatch"], each["what"])
        events.append(TimedPass(done, 1000 * float(each["begin"]), 1000 * float(each["end"])))
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
