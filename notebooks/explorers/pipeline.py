"""A pipeline, pass by pass: the plan's timeline up to a pass, and what this pass waits for."""

from collections.abc import Sequence
from typing import Final

from common.drawing import plans
from common.drawing.plans import TITLES
from common.parallel.pipelines import Pass, TimedPass, bubble, needed, order, simulate
from notebooks.explorers.forms import MOST, Choice, Control, Form, answer, slider, table, values

TITLE: Final = "A pipeline, pass by pass"

FORM: Final[Form] = [
    [
        Control("stages", 4, range(1, 17), "devices"),
        Control("microbatches", 8, range(1, 65)),
        Control("schedule", "1f1b", TITLES),
        Control("forward", 1, range(1, 9), "forward takes"),
        Control("backward", 2, range(1, 9), "backward takes"),
    ],
    [slider("step", MOST, 1)],
]

KEY: Final = """Below, p is the number of devices, m of microbatches. A thick outline: the pass of
this step. In flight: passed forward, not yet back, so that its inputs wait in memory."""


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    p, m, schedule = (chosen[name] for name in ("stages", "microbatches", "schedule"))
    events = simulate(
        order(schedule, p, m), lambda one: chosen["forward" if one.forward else "backward"]
    )
    chosen["step"] = step = min(chosen["step"], len(events))
    end, told = max(event.end for event in events), words(events, step)
    lanes = plans.lanes(TITLES[schedule], p, events[:step], end, marked=events[step - 1].done)
    title = f"A pipeline: {TITLES[schedule]}, {p} devices"
    drawn = plans.stacked(title, told, lanes, plans.legend(plans.PASSES))
    divisor, whole = ("p", p) if schedule == "naive" else ("(m + p − 1)", m + p - 1)
    rows = [
        ["whole time", f"{end:.0f} units"],
        ["bubble", percent(bubble(events, p))],
        [f"(p − 1) / {divisor}", percent((p - 1) / whole)],
    ]
    numbers = table(["", "the whole step"], rows)
    return answer(chosen, last=len(events), words=told, stage=drawn, key=KEY, tables=numbers)


def percent(share: float) -> str:
    return f"{100 * share:.1f}\u00a0%"


def words(events: Sequence[TimedPass], step: int) -> str:
    """What the pass of a step is, and what it waits for."""
    now, begin, end = events[step - 1]
    done = {event.done: event.end for event in events[:step]}
    needs = [
        f"microbatch {each.microbatch} {way(each)} on device {each.stage}, done at {done[each]:.0f}"
        for each in needed(now, 1 + max(event.done.stage for event in events))
    ]
    local = [event for event in events[:step] if event.done.stage == now.stage]
    free = local[-2].end if local[1:] else 0.0
    waited = f", so it has waited {begin - free:.0f}" if begin > free else ""
    live = sum(1 if event.done.forward else -1 for event in local)
    needs.append(f"its device is free at {free:.0f}{waited}")
    return (
        f"Step {step} of {len(events)}: Device {now.stage} passes microbatch {now.microbatch} "
        f"{way(now)}, from {begin:.0f} to {end:.0f}. It needs: {'; '.join(needs)}. "
        f"In flight there: {live}."
    )


def way(one: Pass) -> str:
    return "forward" if one.forward else "backward"
