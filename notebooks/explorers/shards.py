"""Which device has which part of which weight, gradient and momentum, moment by moment."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import accumulate
from typing import Final

from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.drawing import svg
from common.parallel.plans import Plan
from common.scaling.scenario import Scenario
from notebooks.drawing.pictures import filled
from notebooks.explorers.forms import (
    Choice,
    Form,
    answer,
    drawing,
    entry,
    number,
    room,
    select,
    size,
    slider,
    values,
)
from notebooks.explorers.moments import STATE, Held, Moment, moments, sent

FORM: Final[Form] = [
    [
        select("strategy", STRATEGIES.keys(), "zero3"),
        number("depth", 0, (0, 4), "more layers"),
        number("devices", 4, (1, 8)),
        number("replicas", 1, (1, 8)),
        number("microbatches", 1, (1, 4)),
        select("schedule", SCHEDULES.keys(), "1f1b"),
        select(
            "what", {"all": "all three", **dict(zip(STATE, STATE, strict=True))}, "all", view=True
        ),
    ],
    [slider("moment")],
]

KINDS: Final = {
    "weights": ("cell", {"kept": 0.9, "new": 0.9, "gathered": 0.3, "old": 0.3}),
    "gradients": ("sent-cell", {"own": 0.25, "group": 0.5, "sum": 0.8}),
    "momentum": ("cell", {"kept": 0.45}),
}
"""The colour of each kind, and how much of it a part of each role has."""

LEGEND: Final = {
    "weights": "Weights: pale ones are gathered for a moment, or wait for new values. ",
    "gradients": "Gradients: the darker, the more devices’ examples are in the sum. ",
}

HEAD, HIGH, NAMES, ABOVE, WAITING = 34, 30, 88, 17, 7
"""Of the picture: above the boxes, a box, the width of layers' names, or their height, and the
width of kept inputs."""

NARROW, LEAST = 560, 18
"""A narrower picture has the names of layers above their rows; a narrower box has no bias."""


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    hidden = ["replicas"] * (chosen["strategy"] == "data")
    hidden += ["schedule"] * (chosen["strategy"] != "pipeline")
    settings = {name: value for name, value in chosen.items() if name not in ("what", "moment")}
    scenario = Scenario(**settings)
    if why := scenario.refusal():
        said = ("words", f"There is no such plan: {escape(why)}.")
        chosen["moment"] = 0
        return answer(
            [said, *((x, "") for x in ("sent", "stage", "legend", "key"))], chosen, hidden
        )
    plan = scenario.plan()
    every = moments(plan, scenario.examples)
    chosen["moment"] = at = min(chosen["moment"], len(every) - 1)
    moment, so_far = every[at], list(accumulate(4 * sent(each) for each in every))
    kinds = STATE if chosen["what"] == "all" else (chosen["what"],)
    entries = [
        entry(part, max(shares.values()), f"{kind} {size(4 * moment.held(plan, kind, 0))}")
        for kind, (part, shares) in KINDS.items()
    ]
    entries.append(entry("data-cell", 0.9, "the input of a layer, for each microbatch"))
    blocks = [
        ("words", escape(moment.words)),
        (
            "sent",
            f"Sent by all devices: {size(4 * sent(moment))} now, {size(so_far[at])} so far, "
            f"{size(so_far[-1])} in the whole step.",
        ),
        ("stage", picture(plan, moment, kinds, room(choice))),
        ("legend", f"On device 0 now: {' '.join(entries)}"),
        (
            "key",
            "".join(LEGEND.get(kind, "") for kind in kinds)
            + "A thick outline: it has just come from other devices.",
        ),
    ]
    return answer(blocks, chosen, hidden, len(every) - 1)


def picture(plan: Plan, moment: Moment, kinds: Sequence[str], width: int) -> str:
    count, above = plan.devices * plan.replicas, ABOVE * (width < NARROW)
    left = 0 if above else NAMES
    pitch, row = min(190.0, (width - left) / count), HIGH + 8 + above
    gap, height = 8 if pitch > 60 else 4, HEAD + len(plan.layers) * row
    drawn = []
    for i, layer in enumerate(plan.layers):
        bold = ["bold"] * (layer in moment.about)
        y = HEAD + i * row + (above - 4 if above else HIGH / 2 + 4)
        drawn.append(svg.text(0, y, layer, *bold, anchor="start"))
    for device in range(count):
        x, wide = left + device * pitch + WAITING, pitch - gap - WAITING
        name = f"device {device}" if pitch > 66 else str(device)
        drawn.append(svg.text(x + wide / 2, 13, name, "muted"))
        if device and device % plan.devices == 0 and plan.devices > 1:  # another group
            drawn.append(svg.path(f"M{x - WAITING - gap / 2:.1f} 2V{height}", "rule"))
        box = wide / len(kinds)
        for i, kind in enumerate(kinds):
            label = kind if box > 62 else kind[0]
            drawn.append(svg.text(x + (i + 0.5) * box - 1, 27, label, "muted"))
        for i, layer in enumerate(plan.layers):
            place = x, HEAD + i * row + above, box, HIGH
            drawn += column(plan, moment, kinds, layer, device % plan.devices, place)
    return drawing(left + count * pitch, height, moment.words, drawn)


def column(
    plan: Plan, moment: Moment, kinds: Sequence[str], layer: str, device: int, place: svg.Place
) -> Iterator[str]:
    """What a device has of a layer: kept inputs, and a box of this place for each kind."""
    x, y, box, high = place
    for i in range(moment.inputs[layer][device]):
        yield svg.rect((x - WAITING, y + high - 7 - 7.5 * i, 5, 7), "data-cell", share=0.9)
    for i, kind in enumerate(kinds):
        came = moment.moved == kind and layer in moment.about
        here = {name: each[device] for name, each in moment.state[kind].items()}
        wide = box - (4 if box > 20 else 1.5)
        yield from tensors(plan, layer, kind, here, (x + i * box, y, wide, high), came)


def tensors(
    plan: Plan,
    layer: str,
    kind: str,
    here: Mapping[str, Sequence[Held]],
    place: svg.Place,
    came: bool,
) -> Iterator[str]:
    """The parts of a weight, and of its bias in a narrow box beside it."""
    x, y, wide, high = place
    bias = min(12, wide * 0.15)
    boxes = {"weight": (x, y, wide - bias - 2, high), "bias": (x + wide - bias, y, bias, high)}
    for end, outline in boxes.items() if wide >= LEAST else [("weight", place)]:
        name, (colour, shares) = f"{layer}.{end}", KINDS[kind]
        held = [(part, role) for part, role in here[name] if part.stop > part.start]
        for part, role in held:
            where = filled(part, plan.shapes[name], outline)
            yield svg.rect(where, colour, radius=2, share=shares[role])
        yield svg.rect(outline, "got" if came and held else "ghost", radius=2)
