"""A pipeline, pass by pass: the plan's timeline, and that of a real run below it."""

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from common.drawing import plans
from common.drawing.plans import TITLES
from common.parallel.pipelines import Pass, TimedPass, bubble, needed, order, simulate
from notebooks.explorers.forms import (
    END,
    Choice,
    Form,
    answer,
    counted,
    number,
    select,
    slider,
    table,
    values,
)
from notebooks.explorers.runs import LABELS, MOST, TimedRun, differences, kept, opened

FORM: Final[Form] = [
    [
        number("stages", 4, (1, MOST[0]), "devices"),
        number("microbatches", 8, (1, MOST[1])),
        select("schedule", TITLES, "1f1b"),
        number("forward", 1.0, (0.5, 8), "forward takes", 0.5),
        number("backward", 2.0, (0.5, 8), "backward takes", 0.5),
    ],
    [
        select(
            "beside",
            {"nothing": "nothing", **LABELS, "own": "a record of your own"},
            "nothing",
            "beside it",
        ),
        select(
            "times",
            {"measured": "as measured", "alone": "as if each device had cores of its own"},
            "measured",
            "times of the run",
            view=True,
        ),
    ],
    [slider("step", END, 1)],
]

BELOW: Final = (
    '<p class="explorer-row"><label>a record of your own <input type="file" accept=".json"></label>'
    '</p><p class="explorer-key">It is read in this browser and goes nowhere.</p>'
)

FILLING: Final = "(p − 1) / (m + p − 1)"


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    run, refused = beside(chosen, choice)
    p, m, schedule = (chosen[name] for name in ("stages", "microbatches", "schedule"))
    passes = order(schedule, p, m)
    events = simulate(passes, lambda one: chosen["forward" if one.forward else "backward"])
    chosen["step"] = step = min(chosen["step"], len(events))
    done = [event.done for event in events[:step]]
    columns = {"plan": [*sums(events, p, "units"), percent(theory(schedule, p, m))]}
    blocks = [plans.lanes(TITLES[schedule], p, events[:step], end_of(events), marked=done[-1])]
    said: list[str] = []
    if run:
        timed = run.events if chosen["times"] == "measured" else alone(run)
        columns[run.name] = [*sums(timed, p, "ms"), "–"]
        shown, end = [event for event in timed if event.done in {*done}], end_of(timed)
        blocks.append(plans.lanes(run.name, p, shown, end, "ms", done[-1]))
        said = [f"Below: {run.name}{run.about}.", *differences(passes, run)]
    title = f"A pipeline: {TITLES[schedule]}, {counted(p, 'device')}"
    drawn = plans.stacked(title, told(events, step), *blocks, plans.legend(plans.PASSES))
    rows = ("whole time", "bubble", "bubble in theory")
    formula = "(p − 1) / p, as one device works at a time" if schedule == "naive" else FILLING
    theoretical = (
        f"In theory, the bubble is {formula} with p = {counted(p, 'device')} and m = "
        f"{counted(m, 'microbatch')}, however long a pass takes. A thick outline: the pass of this "
        "step. In flight: passed forward, not yet back, so that its inputs wait in memory."
    )
    return answer(
        [
            ("words", told(events, step)),
            ("refused", refused),
            ("stage", drawn),
            ("run", " ".join(map(escape, said))),
            ("tables", table(["", *columns], zip(rows, *columns.values(), strict=True))),
            ("key", theoretical),
        ],
        chosen,
        ["times"] * (chosen["beside"] == "nothing"),
        len(events),
    )


def beside(chosen: dict[str, Any], choice: Choice) -> tuple[TimedRun | None, str]:
    """The run to draw below, or why there is none; a plan takes a new run's numbers over."""
    which, run, content = chosen["beside"], None, choice.get("record", "")
    if which == "nothing":
        return None, ""
    if which != "own":
        run = kept().get((which, chosen["schedule"])) or kept()[which, "1f1b"]
    elif not content:
        return None, "Choose a record of your own below."
    elif (run := opened(content)) is None:
        return None, "This file is no record of one pipeline, or lacks passes of it."
    numbers = {"stages": run.stages, "microbatches": run.microbatches, "schedule": run.schedule}
    if choice.get("changed") in ("beside", "record"):
        chosen |= numbers
    if {name: chosen[name] for name in numbers} == numbers:
        return run, ""
    sizes = f"{counted(run.stages, 'device')} and {counted(run.microbatches, 'microbatch')}"
    return None, f"That run has {sizes}, in the order {TITLES[run.schedule]}: choose these."


def alone(run: TimedRun) -> list[TimedPass]:
    """The same passes as if no device had to wait for a core."""
    lengths = {event.done: event.end - event.begin for event in run.events}
    return simulate(run.passes(), lengths.__getitem__)


def theory(schedule: str, p: int, m: int) -> float:
    return (p - 1) / (p if schedule == "naive" else m + p - 1)


def time(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def end_of(events: Sequence[TimedPass]) -> float:
    return max(event.end for event in events)


def percent(share: float) -> str:
    return f"{100 * share:.1f}\u00a0%"


def sums(events: Sequence[TimedPass], devices: int, unit: str) -> list[str]:
    return [f"{time(end_of(events))} {unit}", percent(bubble(events, devices))]


def told(events: Sequence[TimedPass], step: int) -> str:
    """What the pass of a step is, and what it waits for."""
    now, begin, end = events[step - 1]
    done = {event.done: event for event in events[:step]}
    needs = [
        f"microbatch {each.microbatch} {way(each)} on device {each.stage}, done at "
        f"{time(done[each].end)}"
        for each in needed(now, 1 + max(event.done.stage for event in events))
    ]
    earlier = [event.end for event in events[: step - 1] if event.done.stage == now.stage]
    free = max(earlier, default=0.0)
    waited = f", so it has waited {time(begin - free)}" if begin > free else ""
    live = sum(1 if each.forward else -1 for each in done if each.stage == now.stage)
    then = counted(live, "microbatch")
    needs.append(f"its device is free at {time(free)}{waited}")
    return (
        f"Step {step} of {len(events)}: Device {now.stage} passes microbatch "
        f"{now.microbatch} {way(now)}, from {time(begin)} to {time(end)}. It needs: "
        f"{'; '.join(needs)}. Then it has {then} in flight."
    )


def way(one: Pass) -> str:
    return "forward" if one.forward else "backward"
