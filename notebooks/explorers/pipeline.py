"""A pipeline: when each device passes which microbatch, and how long it waits."""

from typing import Final

from common.drawing import plans
from common.drawing.plans import TITLES
from common.parallel.pipelines import bubble, order, simulate
from notebooks.explorers.forms import Choice, Control, Form, answer, values

TITLE: Final = "A pipeline"

FORM: Final[Form] = [
    [
        Control("devices", 4, range(1, 17)),
        Control("microbatches", 8, range(1, 65)),
        Control("schedule", "1f1b", TITLES),
        Control("forward", 1, range(1, 9), "forward takes"),
        Control("backward", 2, range(1, 9), "backward takes"),
    ]
]

KEY: Final = """Of p devices and m microbatches, the bubble is (p − 1) / (m + p − 1), in the naive
order (p − 1) / p, however long a pass takes. In flight: passed forward, not yet back, so that
inputs are kept."""


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    p, m, schedule = (chosen[name] for name in ("devices", "microbatches", "schedule"))
    events = simulate(
        order(schedule, p, m), lambda one: chosen["forward" if one.forward else "backward"]
    )
    end, waits = max(event.end for event in events), 100 * bubble(events, p)
    words = f"The step takes {end:.0f} units of time. The bubble is {waits:.1f}\u00a0% of it."
    lanes = plans.lanes(TITLES[schedule], p, events, end)
    drawn = plans.stacked(f"{TITLE}: {TITLES[schedule]}", words, lanes, plans.legend(plans.PASSES))
    return answer(chosen, words=words, stage=drawn, key=KEY)
