"""Pictures of plans: when each stage of a pipeline works, and what takes a device's memory."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from common.chapters.strategies import StrategiesOptions
from common.drawing import svg
from common.parallel.ledger import KEPT, Event, Usage
from common.parallel.pipelines import ORDERS, Pass, TimedPass, bubble, most_live, simulate
from common.parallel.plans import Plan

WIDTH: Final = 480
MARGIN: Final = 16
NAMES: Final = 62
"""What the names of devices take."""

LANE: Final = 20
"""From one device to the next one below."""

GROUP: Final = 46
"""What the heading of several devices takes, with the room before it."""

MEGABYTES: Final = 62
"""What the number behind a bar takes."""

KINDS: Final = {
    "weights": ("cell", 0.9),
    "gradients": ("sent-cell", 0.75),
    "momentum": ("cell", 0.3),
    "activations": ("data-cell", 0.6),
}
"""How each kind of memory is drawn: its colour, and how much of it."""

OPTIMIZER: Final = {"momentum": "optimizer"}
"""What momentum is called where the optimizer may keep more, or none."""

PASSES: Final = {"forward": ("cell", 0.3), "backward": ("sent-cell", 0.35)}
"""How each kind of pass is drawn."""

SAID: Final = {"naive": "Naive", "gpipe": "GPipe", "1f1b": "1F1B"}


def timelines(stages: int = 4, microbatches: int = 4) -> str:
    """Every order of a pipeline on one scale: what each device does, and when it waits."""
    orders = {name: made(stages, microbatches) for name, made in ORDERS.items()}
    events = {name: simulate(order) for name, order in orders.items()}
    longest = max(event.end for each in events.values() for event in each)
    parts: list[str] = []
    y = 8.0
    for name, order in orders.items():
        live = ", ".join(str(most_live(passes)) for passes in order)
        told = f"{_planned(events[name], stages)} Most live microbatches: {live}."
        parts += _lanes(y, SAID[name], told, stages, events[name], longest)
        y += GROUP + stages * LANE + 8
    parts += _legend(y + 16, PASSES)
    described = (
        f"{microbatches} microbatches go through {stages} devices, forward and backward. Each pass "
        "takes one unit of time. Empty places in a device's row are times in which it waits."
    )
    return svg.picture(WIDTH, y + 32, "Orders of a pipeline", described, parts)


def _planned(events: Sequence[TimedPass], stages: int) -> str:
    """How long an order takes, and how much of it devices wait."""
    end, waits = max(event.end for event in events), bubble(events, stages)
    return f"{end:.0f} units of time, {waits:.0%} of it waiting."


def step(plan: Plan, usage: Usage, run: Sequence[Event] = ()) -> str:
    """A step of a plan: what each device keeps and, of a pipeline, when it works.

    `run` is what a real pipeline did, on a scale of its own. Of several groups, the first is drawn.
    """
    parts: list[str] = []
    y = 8.0
    if plan.strategy == "pipeline":
        planned = plan.simulated(usage.examples)
        told = f"By plan: {_planned(planned, plan.devices)}"
        shown: list[tuple[str, str, Sequence[TimedPass]]] = [(SAID[plan.schedule], told, planned)]
        if run:
            own = [each for each in run if each.device < plan.devices]
            passes = [Pass(each.device, each.microbatch, each.what == "forward") for each in own]
            did = [TimedPass(one, e.begin, e.end) for one, e in zip(passes, own, strict=True)]
            told = f"{1000 * max(event.end for event in did):.1f} ms; one process told all devices."
            shown.append(("A run", told, did))
        for name, told, events in shown:
            parts += _lanes(y, name, told, plan.devices, events, max(e.end for e in events))
            y += GROUP + plan.devices * LANE + 8
        parts += _legend(y + 16, PASSES)
        y += 32
    count = plan.devices * plan.replicas
    totals = [sum(each) for each in zip(*usage.peak.values(), strict=True)]
    parts += _bars(y, "Memory", usage.peak, max(totals))
    y += GROUP - 20 + count * LANE
    parts += _legend(y + 16, {OPTIMIZER.get(kind, kind): how for kind, how in KINDS.items()})
    title = f"A step: {plan.strategy}, {count} devices"
    described = "When each device passes which microbatch, and bytes at their most, by kind."
    return svg.picture(WIDTH, y + 32, title, described, parts)


def _lanes(
    y: float, name: str, told: str, stages: int, events: Sequence[TimedPass], longest: float
) -> Iterator[str]:
    """What each device does in one order; the number in a box is that of the microbatch.

    `longest` is the time that takes the whole width.
    """
    yield svg.text(MARGIN, y + 18, name, "bold", size=14, anchor="start")
    yield svg.text(MARGIN, y + 36, told, "muted", anchor="start")
    left, unit = MARGIN + NAMES, (WIDTH - 2 * MARGIN - NAMES) / longest
    end = max(event.end for event in events)
    for stage in range(stages):
        top = y + GROUP + stage * LANE
        yield svg.text(MARGIN, top + 13, f"device {stage}", "muted", anchor="start")
        yield svg.rect(left, top, end * unit, LANE - 3, "ghost", radius=2)
    for event in events:
        at, wide = left + event.begin * unit, (event.end - event.begin) * unit
        label = str(event.done.microbatch)
        part, share = PASSES["forward" if event.done.forward else "backward"]
        top = y + GROUP + event.done.stage * LANE
        lines = [label] if svg.fits(label, wide) else []
        yield svg.box(at, top, wide, LANE - 3, lines, part, share)


def memory(devices: int, examples: int, *ways: str, microbatches: int = 1) -> str:
    """What takes the memory of each device in a step, in float32, for some ways to split."""
    options = [StrategiesOptions(way, microbatches=microbatches) for way in ways]
    peaks = [each.usage(devices, examples, 4).peak for each in options]
    most = max(sum(peak[kind][i] for kind in KEPT) for peak in peaks for i in range(devices))
    parts: list[str] = []
    y = 8.0
    for way, peak in zip(ways, peaks, strict=True):
        parts += _bars(y, way, peak, most)
        y += GROUP - 20 + devices * LANE + 6
    parts += _legend(y + 16, KINDS)
    described = (
        f"Bytes of weights, gradients, momentum and activations at their most, on {devices} "
        f"devices, in a step on {examples} examples, for {', '.join(ways)}."
    )
    return svg.picture(WIDTH, y + 32, f"Memory of {devices} devices", described, parts)


def _bars(y: float, name: str, peak: Mapping[str, Sequence[int]], most: int) -> Iterator[str]:
    """Each device's memory, kind after kind, and the sum behind it; `most` is the largest sum."""
    yield svg.text(MARGIN, y + 18, name, "bold", size=14, anchor="start")
    unit = (WIDTH - 2 * MARGIN - NAMES - MEGABYTES) / most
    for device, kept in enumerate(zip(*(peak[kind] for kind in KEPT), strict=True)):
        x, top = float(MARGIN + NAMES), y + GROUP - 20 + device * LANE
        yield svg.text(MARGIN, top + 13, f"device {device}", "muted", anchor="start")
        for kind, size in zip(KEPT, kept, strict=True):
            part, share = KINDS[kind]
            yield svg.rect(x, top, size * unit, LANE - 3, part, radius=0, share=share)
            x += size * unit
        yield svg.text(x + 6, top + 13, _size(sum(kept)), anchor="start")


def _size(count: int) -> str:
    """A number of bytes in megabytes or, if they are many, in gigabytes or terabytes."""
    units = (1e12, "TB"), (1e9, "GB"), (1e6, "MB")
    unit, name = next((each for each in units if count >= each[0]), units[-1])
    value = count / unit
    return f"{value:.2f} {name}" if value < 100 else f"{value:.0f} {name}"


def _legend(y: float, kinds: dict[str, tuple[str, float]]) -> Iterator[str]:
    """What colours mean."""
    for place, (kind, (part, share)) in enumerate(kinds.items()):
        x = MARGIN + 112 * place
        yield svg.rect(x, y - 11, 22, 14, part, share=share)
        yield svg.text(x + 28, y, kind, anchor="start")
