"""Pictures of plans: layouts of weights, timelines of pipelines, memory of devices."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from common.chapters.strategies import StrategiesOptions
from common.drawing import svg
from common.parallel.ledger import Usage
from common.parallel.pipelines import IN_FLIGHT, TimedPass, bubble, most_live, order, simulate
from common.parallel.plans import Part, Plan

WIDTH: Final = 480
MARGIN: Final = 16

LEFT: Final = MARGIN + 62
"""Where the rows of devices begin, behind their names."""

LANE, HEADING, TOTAL = 20, 26, 62
"""From one device to the next, the height of a heading, the width of a bar's sum."""

HIGH, ROW, WIDEST, NAMES = 40, 52, 132, 52
"""The height of a weight, from one layer to the next, the most from one device to the next,
and the width of layers' names."""

Style = tuple[str, float]
"""The class of a shape, and the share of its colour."""

Block = tuple[float, Sequence[str]]
"""A part of a picture: its height, and its shapes, from 0 downwards."""

KINDS: Final[dict[str, Style]] = {
    "weights": ("cell", 0.9),
    "gradients": ("sent-cell", 0.75),
    "momentum": ("cell", 0.3),
    "activations": ("data-cell", 0.6),
}
"""The kinds of memory."""

PASSES: Final[dict[str, Style]] = {"forward": ("cell", 0.3), "backward": ("sent-cell", 0.35)}

TITLES: Final = {"naive": "Naive", "gpipe": "GPipe", "1f1b": "1F1B"}


def who_has_what(strategy: str, devices: int, replicas: int = 1) -> str:
    """Which device keeps which part of each weight and bias, in an outline of the whole.

    The first axis of a weight runs down, the second one to the right.
    """
    plan = StrategiesOptions(strategy, replicas=replicas, microbatches=1).plan(devices)
    pitch = min(WIDEST, (WIDTH - 2 * MARGIN - NAMES) / devices)
    drawn: list[str] = []
    for number in range(devices):
        x = MARGIN + NAMES + number * pitch
        name = f"device {number}" if pitch > 60 else str(number)
        drawn.append(svg.text(x + (pitch - 12) / 2, 26, name, "muted"))
        for row, layer in enumerate(plan.layers):
            top = 38 + ROW * row
            if number == 0:
                middle = top + HIGH / 2 + 4
                drawn.append(svg.text(MARGIN, middle, layer, "bold", anchor="start"))
            for kind, left, wide in (("weight", x, pitch - 30), ("bias", x + pitch - 24, 12)):
                name = f"{layer}.{kind}"
                place = left, top, wide, HIGH
                drawn.append(svg.rect(place, "ghost", radius=2))
                if (part := plan.weights[name][number % plan.devices]) is not None:
                    drawn.append(_filled(part, plan.shapes[name], place))
    sizes = [plan.sizes_of(plan.weights, i).values() for i in range(plan.devices)]
    kept = [f"{sum(elements):,}" for elements in sizes]
    rows = f" in {replicas} rows" if replicas > 1 else ""
    described = (
        f"Each of {devices} devices keeps a part of the weight and the bias of each layer, "
        f"by the strategy {strategy}. Elements kept: {', '.join(kept)}."
    )
    title = f"Who has what: {strategy}, {devices} devices{rows}"
    return svg.picture(WIDTH, 38 + ROW * len(plan.layers), title, described, drawn)


def _filled(part: Part, shape: tuple[int, ...], place: svg.Place) -> str:
    """The part in the outline; a flat slice is drawn from the top down."""
    x, y, wide, high = place
    length = math.prod(shape) if part.axis is None else shape[part.axis]
    start, stop = part.start / length, part.stop / length
    if part.axis == 1:
        part_place = x + wide * start, y, wide * (stop - start), high
    else:
        part_place = x, y + high * start, wide, high * (stop - start)
    return svg.rect(part_place, "cell", share=0.6)


def timelines(stages: int = 4, microbatches: int = 4) -> str:
    """Every order of a pipeline on one scale: when each device works and waits."""
    events = {name: simulate(order(name, stages, microbatches)) for name in IN_FLIGHT}
    longest = max(event.end for timed in events.values() for event in timed)
    blocks = [_lanes(name, stages, timed, longest) for name, timed in events.items()]
    described = (
        f"{microbatches} microbatches go through {stages} devices, forward and backward. "
        "Each pass takes one unit of time. In empty places of a row, a device waits."
    )
    return _stacked("Orders of a pipeline", described, *blocks, _legend(PASSES))


def step(plan: Plan, usage: Usage) -> str:
    """A step of a plan: memory by device and, of a pipeline, the first group's passes."""
    blocks = []
    if plan.strategy == "pipeline":
        events = plan.simulated(usage.examples)
        longest = max(event.end for event in events)
        blocks += [_lanes(plan.schedule, plan.devices, events, longest), _legend(PASSES)]
    kinds = {"optimizer" if kind == "momentum" else kind: how for kind, how in KINDS.items()}
    blocks += [_bars("Memory", usage, max(usage.kept())), _legend(kinds)]
    described = "When each device passes which microbatch, and peak bytes by kind."
    title = f"A step: {plan.strategy}, {plan.devices * plan.replicas} devices"
    return _stacked(title, described, *blocks)


def memory(devices: int, examples: int, *strategies: str, microbatches: int = 1) -> str:
    """The memory of each device in a float32 step, for some strategies."""
    options = [StrategiesOptions(name, microbatches=microbatches) for name in strategies]
    usages = [chosen.usage(devices, examples, 4) for chosen in options]
    most = max(max(usage.kept()) for usage in usages)
    blocks = [_bars(name, usage, most) for name, usage in zip(strategies, usages, strict=True)]
    described = (
        f"Peak bytes of weights, gradients, momentum and activations on {devices} devices, "
        f"in a step on {examples} examples, for {', '.join(strategies)}."
    )
    return _stacked(f"Memory of {devices} devices", described, *blocks, _legend(KINDS))


def _stacked(title: str, described: str, *blocks: Block) -> str:
    """A picture of blocks below each other."""
    parts: list[str] = []
    y = 8.0
    for height, shapes in blocks:
        parts.append(svg.lowered(y, shapes))
        y += height
    return svg.picture(WIDTH, y, title, described, parts)


def _label(y: float, text: str) -> str:
    return svg.text(MARGIN, y, text, "muted", anchor="start")


def _heading(name: str) -> str:
    return svg.text(MARGIN, 18, name, "bold", size=14, anchor="start")


def _lanes(schedule: str, stages: int, events: Sequence[TimedPass], longest: float) -> Block:
    """The passes of each device; `longest` takes the whole width."""
    end = max(event.end for event in events)
    note = f"{end:.0f} units of time, {bubble(events, stages):.0%} of it waiting."
    if stages <= 8:  # more do not fit in the line
        done = [event.done for event in events]
        passes = [[step for step in done if step.stage == i] for i in range(stages)]
        note += f" Most microbatches in flight: {', '.join(map(str, map(most_live, passes)))}."
    shapes = [_heading(TITLES[schedule]), _label(36, note)]
    top, unit = HEADING + 20, (WIDTH - MARGIN - LEFT) / longest
    for stage in range(stages):
        y = top + stage * LANE
        shapes.append(_label(y + 13, f"device {stage}"))
        shapes.append(svg.rect((LEFT, y, end * unit, LANE - 3), "ghost", radius=2))
    for (stage, microbatch, forward), begin, end in events:
        wide = (end - begin) * unit
        label = str(microbatch) if svg.fits(str(microbatch), wide) else ""
        place = (LEFT + begin * unit, top + stage * LANE, wide, LANE - 3)
        style = PASSES["forward" if forward else "backward"]
        shapes.append(svg.box(place, label, *style))
    return top + stages * LANE + 8, shapes


def _bars(name: str, usage: Usage, most: int) -> Block:
    """Each device's memory by kind, and the sum; `most` is the largest sum."""
    shapes = [_heading(name)]
    unit = (WIDTH - MARGIN - LEFT - TOTAL) / most
    for device, total in enumerate(usage.kept()):
        x, y = float(LEFT), HEADING + device * LANE
        shapes.append(_label(y + 13, f"device {device}"))
        for kind, (part, share) in KINDS.items():
            wide = usage.peak[kind][device] * unit
            shapes.append(svg.rect((x, y, wide, LANE - 3), part, radius=0, share=share))
            x += wide
        shapes.append(svg.text(x + 6, y + 13, _size(total), anchor="start"))
    return HEADING + len(usage.live) * LANE + 6, shapes


def _size(count: int) -> str:
    """A number of bytes in megabytes, gigabytes or terabytes."""
    units = (1e12, "TB"), (1e9, "GB"), (1e6, "MB")
    unit, name = next((unit for unit in units if count >= unit[0]), units[-1])
    value = count / unit
    return f"{value:.2f} {name}" if value < 100 else f"{value:.0f} {name}"


def _legend(kinds: Mapping[str, Style]) -> Block:
    """The meaning of colours."""
    shapes = []
    for place, (kind, (part, share)) in enumerate(kinds.items()):
        x = MARGIN + 112 * place
        shapes.append(svg.rect((x, 5, 22, 14), part, share=share))
        shapes.append(svg.text(x + 28, 16, kind, anchor="start"))
    return 32, shapes
