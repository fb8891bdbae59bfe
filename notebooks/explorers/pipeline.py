"""A pipeline: when each device passes which microbatch, and how long it waits."""

from itertools import chain
from typing import Final

from common.drawing import plans
from common.drawing.plans import TITLES
from common.parallel.pipelines import UNITS, bubble, order, simulate
from notebooks.explorers.forms import Choice, Control, Form, answer, values
from notebooks.explorers.record import DEVICES, MICROBATCHES, opened

TITLE: Final = "A pipeline"

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
