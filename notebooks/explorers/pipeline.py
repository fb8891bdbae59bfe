"""A pipeline, pass by pass: the plan's timeline, and that of a real run below it."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from common.drawing import svg
from common.drawing.plans import TITLES
from common.parallel.pipelines import Pass, TimedPass, bubble, most_live, needed, order, simulate
from notebooks.explorers.forms import (
    END,
    Choice,
    Form,
    answer,
    counted,
    drawing,
    number,
    percent,
    room,
    select,
    slider,
    table,
    values,
)
from notebooks.explorers.runs import LABELS, MOST, Run, differences, kept, opened

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
    [slider("step", END)],
]

BELOW: Final = (
    '<p class="explorer-row"><label>a record of your own <input type="file" accept=".json"></label>'
    '</p><p class="explorer-key">It is read in this browser and goes nowhere.</p>'
)

KEY: Final = """A row is a device; a box is a pass, with the number of its microbatch. Forward
passes are blue and stand high, backward passes are orange and stand low. Tap a box to go to its
step, and see what it waits for. Dashed boxes come after this step. A thick outline: the pass of
this step. Thin ones, with lines: what it needs. Live: passed forward, not yet back, so that its
inputs wait in memory."""

FILLING: Final = "(p − 1) / (m + p − 1)"

LANE, BOX, LOW, FOOT = 28, 19, 6, 18
"""Of the picture: a row, a box in it, how much lower a backward pass stands, the times below."""


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    run, refused = beside(chosen, choice)
    p, m, schedule = (chosen[name] for name in ("stages", "microbatches", "schedule"))
    passes = order(schedule, p, m)
    events = simulate(passes, lambda one: chosen["forward" if one.forward else "backward"])
    chosen["step"] = step = min(chosen["step"], len(events))
    steps = {event.done: i for i, event in enumerate(events, start=1)}
    columns = {"plan": sums(events, p, "units")}
    columns["plan"].append(percent(theory(schedule, p, m)))
    below = ""
    if run:
        timed = run.events if chosen["times"] == "measured" else alone(run)
        columns[run.name] = [*sums(timed, p, "ms"), "–"]
        said = "".join(f"<li>{each}</li>" for each in differences(passes, run))
        real = timeline(timed, steps, step, room(choice), "ms")
        below = f"<p>Below: {escape(run.name + run.about)}.</p>{real}<ul>{said}</ul>"
    rows = ("whole time", "bubble", "bubble in theory")
    whole = table(["", *columns], zip(rows, *columns.values(), strict=True))
    formula = "(p − 1) / p, as one device works at a time" if schedule == "naive" else FILLING
    blocks = [
        ("words", escape(told(events, step) if step else "Start: no microbatch has been passed.")),
        ("stage", timeline(events, steps, step, room(choice), "units")),
        ("refused", refused),
        ("run", below),
        ("tables", whole + in_flight(events[:step], passes, m)),
        (
            "theory",
            f"In theory, the bubble is {formula} with p = {counted(p, 'device')} and m = "
            f"{counted(m, 'microbatch')}, however long a pass takes.",
        ),
        ("key", KEY),
    ]
    return answer(blocks, chosen, ["times"] * (chosen["beside"] == "nothing"), len(events))


def beside(chosen: dict[str, Any], choice: Choice) -> tuple[Run | None, str]:
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


def alone(run: Run) -> list[TimedPass]:
    """The same passes as if no device had to wait for a core."""
    lengths = {event.done: event.end - event.begin for event in run.events}
    return simulate(run.passes(), lengths.__getitem__)


def theory(schedule: str, p: int, m: int) -> float:
    return (p - 1) / (p if schedule == "naive" else m + p - 1)


def time(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def sums(events: Sequence[TimedPass], devices: int, unit: str) -> list[str]:
    end = max(event.end for event in events)
    return [f"{time(end)} {unit}", percent(bubble(events, devices))]


def live(done: Sequence[Pass], device: int) -> int:
    """Microbatches that a device has passed forward, and not yet back."""
    return sum(1 if each.forward else -1 for each in done if each.stage == device)


def in_flight(events: Sequence[TimedPass], passes: Sequence[Sequence[Pass]], m: int) -> str:
    done = [event.done for event in events]
    rows = (
        [
            f"device {device}",
            str(live(done, device)),
            str(most_live(each)),
            percent(most_live(each) / m),
        ]
        for device, each in enumerate(passes)
    )
    return table(["", "in flight now", "at most", "of the minibatch"], rows)


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
    then = counted(live([*done], now.stage), "microbatch")
    needs.append(f"its device is free at {time(free)}{waited}")
    return (
        f"Step {step} of {len(events)}: Device {now.stage} passes microbatch "
        f"{now.microbatch} {way(now)}, from {time(begin)} to {time(end)}. It needs: "
        f"{'; '.join(needs)}. Then it has {then} in flight."
    )


def way(one: Pass) -> str:
    return "forward" if one.forward else "backward"


def timeline(
    events: Sequence[TimedPass], steps: Mapping[Pass, int], step: int, width: int, measure: str
) -> str:
    """A box for each pass, and marks at the pass of this step; `steps` are the plan's."""
    left, prefix = (62, "device ") if width > 480 else (26, "d")
    devices, end = 1 + max(event.done.stage for event in events), max(e.end for e in events)
    unit, height = (width - left - 2) / end, devices * LANE + FOOT

    def place(event: TimedPass) -> svg.Place:
        wide, y = (event.end - event.begin) * unit, event.done.stage * LANE + 1
        y += 0 if event.done.forward else LOW
        return left + event.begin * unit, y, max(0.5, wide - (wide > 4)), BOX

    drawn = []
    for device in range(devices):
        drawn.append(svg.text(0, device * LANE + 18, f"{prefix}{device}", "muted", anchor="start"))
        drawn.append(svg.rect((left, device * LANE, end * unit, LANE - 2), "rule", radius=2))
    drawn.append(svg.text(left, height - 3, "0", "muted", anchor="start"))
    drawn.append(svg.text(width - 2, height - 3, f"{time(end)} {measure}", "muted", anchor="end"))
    places = {event.done: place(event) for event in events}
    drawn += [box(places[done], done, steps[done], step) for done, *_ in events]
    now = next((done for done, at in steps.items() if at == step), None)
    return drawing(
        width,
        height,
        f"When {counted(devices, 'device')} work",
        [*drawn, *marks(places, now, devices)],
    )


def box(place: svg.Place, done: Pass, at: int, step: int) -> str:
    """A pass; `at` is its step."""
    names = ["pass", *["tiny"] * (place[2] <= 5), *["later"] * (at > step)]
    shapes = [svg.rect(place, "cell" if done.forward else "sent-cell", radius=2, share=0.25)]
    if svg.fits(str(done.microbatch), place[2], 11):
        middle = place[0] + place[2] / 2
        shapes.append(svg.text(middle, place[1] + 14, str(done.microbatch), size=11))
    return f'<g {svg.classes(*names)} data-step="{at}">{"".join(shapes)}</g>'


def marks(places: Mapping[Pass, svg.Place], now: Pass | None, devices: int) -> list[str]:
    """Outlines of a pass and of those that it needs, with lines between them."""
    if now is None:
        return []
    drawn, (x, y, wide, high) = [], places[now]
    for each in needed(now, devices):
        a, b, long, _ = before = places[each]
        drawn.append(svg.rect(before, "given", radius=2))
        ends = f"M{a + long:.1f} {b + BOX / 2}L{x:.1f} {y + BOX / 2}"
        drawn.append(svg.path(ends, "adds"))
    drawn.append(svg.rect((x, y, max(2, wide), high), "got", radius=2))
    return [svg.group(drawn, "marks")]
