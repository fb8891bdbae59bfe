"""Pictures of plans: when each stage of a pipeline works, and what takes a device's memory."""

from collections.abc import Iterator, Sequence
from typing import Final

from common.chapters.strategies import StrategiesOptions
from common.drawing import svg
from common.parallel import ledger
from common.parallel.ledger import KEPT, Usage
from common.parallel.pipelines import ORDERS, Event, Pass, bubble, most_live, simulate
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
    ends = {name: max(event.end for event in each) for name, each in events.items()}
    unit = (WIDTH - 2 * MARGIN - NAMES) / max(ends.values())
    parts: list[str] = []
    y = 8.0
    for name, order in orders.items():
        waits = f"{bubble(events[name], stages):.0%} of it waiting"
        live = ", ".join(str(most_live(passes)) for passes in order)
        told = f"{ends[name]:.0f} units of time, {waits}. Most live microbatches: {live}."
        parts += _heading(y, SAID[name], told)
        y += GROUP
        parts += _lanes(y, stages, ends[name], events[name], unit)
        y += stages * LANE + 8
    parts += _legend(y + 16, PASSES)
    described = (
        f"{microbatches} microbatches go through {stages} devices, forward and backward. Each pass "
        "takes one unit of time. Empty places in a device's row are times in which it waits."
    )
    return svg.picture(WIDTH, y + 32, "Orders of a pipeline", described, parts)


def step(plan: Plan, usage: Usage, run: Sequence[ledger.Event] = ()) -> str:
    """A step of a plan: what each device keeps and, of a pipeline, when it works.

    `run` is what a real pipeline did, on a scale of its own. Of several groups, the first is drawn.
    """
    parts: list[str] = []
    y = 8.0
    if plan.strategy == "pipeline":
        planned = simulate(plan.order_of(usage.examples))
        units = max(event.end for event in planned)
        waits = f"{bubble(planned, plan.devices):.0%} of it waiting"
        shown: list[tuple[str, str, Sequence[Event]]] = [
            (SAID[plan.schedule], f"By plan: {units:.0f} units of time, {waits}.", planned)
        ]
        if run:
            own = [each for each in run if each.device < plan.devices]
            passes = [Pass(each.device, each.microbatch, each.what == "forward") for each in own]
            did = [Event(one, e.begin, e.end) for one, e in zip(passes, own, strict=True)]
            told = f"{1000 * max(event.end for event in did):.1f} ms; one process told all devices."
            shown.append(("A run", told, did))
        for name, told, events in shown:
            parts += _heading(y, name, told)
            y += GROUP
            end = max(event.end for event in events)
            parts += _lanes(y, plan.devices, end, events, (WIDTH - 2 * MARGIN - NAMES) / end)
            y += plan.devices * LANE + 8
        parts += _legend(y + 16, PASSES)
        y += 32
    parts.append(svg.text(MARGIN, y + 18, "Memory", "bold", size=14, anchor="start"))
    y += GROUP - 20
    totals = [sum(each) for each in zip(*usage.peak.values(), strict=True)]
    unit = (WIDTH - 2 * MARGIN - NAMES - MEGABYTES) / max(totals)
    for device in range(len(totals)):
        parts += _bar(y, device, {kind: usage.peak[kind][device] for kind in KEPT}, unit)
        y += LANE
    parts += _legend(y + 16, {OPTIMIZER.get(kind, kind): how for kind, how in KINDS.items()})
    title = f"A step: {plan.strategy}, {len(totals)} devices"
    described = "When each device passes which microbatch, and bytes at their most, by kind."
    return svg.picture(WIDTH, y + 32, title, described, parts)


def _lanes(
    y: float, stages: int, end: float, events: Sequence[Event], unit: float
) -> Iterator[str]:
    """What each device does in one order; the number in a box is that of the microbatch."""
    left = MARGIN + NAMES
    for stage in range(stages):
        top = y + stage * LANE
        yield svg.text(MARGIN, top + 13, f"device {stage}", "muted", anchor="start")
        yield svg.rect(left, top, end * unit, LANE - 3, "ghost", radius=2)
    for event in events:
        at, wide = left + event.begin * unit, (event.end - event.begin) * unit
        label = str(event.done.microbatch)
        part, share = PASSES["forward" if event.done.forward else "backward"]
        top, lines = y + event.done.stage * LANE, [label] if svg.fits(label, wide) else []
        yield svg.box(at, top, wide, LANE - 3, lines, part, share)


def memory(devices: int, examples: int, *ways: str, microbatches: int = 1) -> str:
    """What takes the memory of each device in a step, in float32, for some ways to split."""
    options = [StrategiesOptions(way, microbatches=microbatches) for way in ways]
    peaks = [each.usage(devices, examples, 4).peak for each in options]
    most = max(sum(peak[kind][i] for kind in KEPT) for peak in peaks for i in range(devices))
    unit = (WIDTH - 2 * MARGIN - NAMES - MEGABYTES) / most
    parts: list[str] = []
    y = 8.0
    for way, peak in zip(ways, peaks, strict=True):
        parts.append(svg.text(MARGIN, y + 18, way, "bold", size=14, anchor="start"))
        y += GROUP - 20
        for device in range(devices):
            parts += _bar(y, device, {kind: peak[kind][device] for kind in KEPT}, unit)
            y += LANE
        y += 6
    parts += _legend(y + 16, KINDS)
    described = (
        f"Bytes of weights, gradients, momentum and activations at their most, on {devices} "
        f"devices, in a step on {examples} examples, for {', '.join(ways)}."
    )
    return svg.picture(WIDTH, y + 32, f"Memory of {devices} devices", described, parts)


def _bar(y: float, device: int, kept: dict[str, int], unit: float) -> Iterator[str]:
    """One device's memory, kind after kind, and the sum behind it."""
    yield svg.text(MARGIN, y + 13, f"device {device}", "muted", anchor="start")
    x: float = MARGIN + NAMES
    for kind, size in kept.items():
        part, share = KINDS[kind]
        yield svg.rect(x, y, size * unit, LANE - 3, part, radius=0, share=share)
        x += size * unit
    yield svg.text(x + 6, y + 13, _size(sum(kept.values())), anchor="start")


def _size(count: int) -> str:
    """A number of bytes in megabytes or, if they are many, in gigabytes or terabytes."""
    units = (1e12, "TB"), (1e9, "GB"), (1e6, "MB")
    unit, name = next((each for each in units if count >= each[0]), units[-1])
    value = count / unit
    return f"{value:.2f} {name}" if value < 100 else f"{value:.0f} {name}"


def _heading(y: float, name: str, told: str) -> Iterator[str]:
    """A name in bold, and a line below it."""
    yield svg.text(MARGIN, y + 18, name, "bold", size=14, anchor="start")
    yield svg.text(MARGIN, y + 36, told, "muted", anchor="start")


def _legend(y: float, kinds: dict[str, tuple[str, float]]) -> Iterator[str]:
    """What colours mean."""
    for place, (kind, (part, share)) in enumerate(kinds.items()):
        x = MARGIN + 112 * place
        yield svg.rect(x, y - 11, 22, 14, part, share=share)
        yield svg.text(x + 28, y, kind, anchor="start")
