"""Pictures of plans: timelines of pipelines, memory of devices."""

from collections.abc import Mapping, Sequence
from typing import Final

from common.drawing import svg
from common.parallel.ledger import Usage
from common.parallel.pipelines import TimedPass, bubble, most_live
from common.parallel.plans import Plan

WIDTH: Final = 480
MARGIN: Final = 16

LEFT: Final = MARGIN + 62
"""Where the rows of devices begin, behind their names."""

LANE, HEADING, TOTAL = 20, 26, 62
"""From one device to the next, the height of a heading, the width of a bar's sum."""

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

TITLES: Final = {"naive": "Naive", "gpipe": "GPipe", "1f1b": "1F1B", "zb1": "ZB-H1"}

PASSES: Final[dict[str, Style]] = {
    "forward": ("cell", 0.3),
    "backward": ("sent-cell", 0.35),
    "input": ("sent-cell", 0.7),
    "weights": ("data-cell", 0.6),
}


def step(plan: Plan, usage: Usage) -> str:
    """A step of a plan: memory by device and, of a pipeline, the first group's passes."""
    blocks = []
    if plan.strategy == "pipeline":
        events = plan.simulated(usage.examples)
        longest = max(event.end for event in events)
        blocks += [lanes(TITLES[plan.schedule], plan.devices, events, longest), passes(events)]
    kinds = {"optimizer" if kind == "momentum" else kind: how for kind, how in KINDS.items()}
    blocks += [bars("Memory: the peak of each kind", usage, max(usage.kept())), legend(kinds)]
    described = "When each device passes which microbatch, and peak bytes by kind."
    title = f"A step: {plan.strategy}, {plan.devices * plan.replicas} devices"
    return stacked(title, described, *blocks)


def stacked(title: str, described: str, *blocks: Block) -> str:
    parts: list[str] = []
    y = 8.0
    for height, shapes in blocks:
        parts.append(svg.lowered(y, shapes))
        y += height
    return svg.picture(WIDTH, y, title, described, parts)


def _label(y: float, text: str) -> str:
    return svg.text(MARGIN, y, text, "muted", anchor="start")


def heading(name: str) -> str:
    return svg.text(MARGIN, 18, name, "bold", size=14, anchor="start")


def lanes(
    name: str,
    stages: int,
    events: Sequence[TimedPass],
    longest: float,
    unit: str = "units of time",
) -> Block:
    """The passes of each device; `longest` takes the whole width."""
    end = max(event.end for event in events)
    note = f"{end:.5g} {unit}, {bubble(events, stages):.0%} of it waiting."
    done = [event.done for event in events]
    by_stage = [[step for step in done if step.stage == i] for i in range(stages)]
    most = f" Most microbatches in flight: {', '.join(map(str, map(most_live, by_stage)))}."
    note += most if len(note + most) <= 80 else ""  # more do not fit in the line
    shapes = [heading(name), _label(36, note)]
    top, scale = HEADING + 20, (WIDTH - MARGIN - LEFT) / longest
    for stage in range(stages):
        y = top + stage * LANE
        shapes.append(_label(y + 13, f"device {stage}"))
        shapes.append(svg.rect((LEFT, y, end * scale, LANE - 3), "ghost", radius=2))
    for one, begin, end in events:
        stage, microbatch, kind = one
        wide = (end - begin) * scale
        label = str(microbatch) if svg.fits(str(microbatch), wide) else ""
        place = (LEFT + begin * scale, top + stage * LANE, wide, LANE - 3)
        shapes.append(svg.box(place, label, *PASSES[kind]))
    return top + stages * LANE + 8, shapes


def bars(name: str, usage: Usage, most: int) -> Block:
    """Each device's memory by kind, and the sum; `most` is the largest sum."""
    shapes = [heading(name)]
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
    units = (1e12, "TB"), (1e9, "GB"), (1e6, "MB")
    unit, name = next((unit for unit in units if count >= unit[0]), units[-1])
    value = count / unit
    return f"{value:.2f} {name}" if value < 100 else f"{value:.0f} {name}"


def passes(events: Sequence[TimedPass]) -> Block:
    """The legend of these passes."""
    kinds = {event.done.kind for event in events}
    return legend({kind: style for kind, style in PASSES.items() if kind in kinds})


def legend(kinds: Mapping[str, Style]) -> Block:
    shapes = []
    for place, (kind, (part, share)) in enumerate(kinds.items()):
        x = MARGIN + 112 * place
        shapes.append(svg.rect((x, 5, 22, 14), part, share=share))
        shapes.append(svg.text(x + 28, 16, kind, anchor="start"))
    return 32, shapes
