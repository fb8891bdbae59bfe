"""Which device has which part of which weight, gradient and momentum, moment by moment."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from common.chapters.strategies import SCHEDULES, STRATEGIES
from common.drawing import plans, svg
from common.drawing.plans import MARGIN, WIDTH
from common.parallel.plans import Plan
from common.scaling.scenario import Scenario
from notebooks.drawing.pictures import NAMES, filled
from notebooks.explorers.forms import Choice, Form, answer, number, select, size, slider, values
from notebooks.explorers.moments import STATE, Moment, moments

FORM: Final[Form] = [
    [
        select("strategy", STRATEGIES.keys(), "zero3"),
        number("depth", 0, (0, 4), "more layers"),
        number("devices", 4, (1, 8)),
        number("microbatches", 1, (1, 4)),
        select("schedule", SCHEDULES.keys(), "1f1b"),
        select("what", {"all": "all three", **{kind: kind for kind in STATE}}, "all", view=True),
    ],
    [slider("moment")],
]

COLOURS: Final = {"weights": "cell", "gradients": "sent-cell", "momentum": "cell"}

SHARES: Final = {
    **{"weights kept": 0.9, "weights new": 0.9, "weights gathered": 0.3, "weights old": 0.3},
    **{"gradients own": 0.25, "gradients sum": 0.8, "momentum kept": 0.45},
}
"""How much of its colour a part of each kind and role has."""

LEGEND: Final = {
    "weights": ("cell", 0.9),
    "gradients": ("sent-cell", 0.8),
    "momentum": ("cell", 0.45),
    "inputs": ("data-cell", 0.9),
}

KEY: Final = """Pale weights are gathered for a moment, or wait for new values. Gradients are pale
until they are summed. A thick outline: it has just come from other devices. Green: the input of a
layer, for each microbatch."""

HEAD, ROW, HIGH, WAITING, LEAST = 40, 38, 30, 7, 18
"""Of the picture: above the rows of layers, a row, a box, the width of kept inputs, and that of
a box in which there is room for the bias."""


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    hidden = ["schedule"] * (chosen["strategy"] != "pipeline")
    scenario = Scenario(**{x: chosen[x] for x in chosen if x not in ("what", "moment")})
    if why := scenario.refusal():
        blocks = [("words", f"There is no such plan: {why}."), ("sent", ""), ("stage", "")]
        return answer([*blocks, ("key", "")], chosen | {"moment": 0}, hidden)
    plan = scenario.plan()
    every = moments(plan, scenario.examples)
    chosen["moment"] = at = min(chosen["moment"], len(every) - 1)
    so_far = list(accumulate(4 * sum(moment.sent.values()) for moment in every))
    held = ", ".join(f"{kind} {size(4 * every[at].held(plan, kind, 0))}" for kind in STATE)
    sent = (
        f"Sent by all devices: {size(so_far[at])} so far, {size(so_far[-1])} in the whole step. On "
        f"device 0 now: {held}."
    )
    kinds = STATE if chosen["what"] == "all" else (chosen["what"],)
    drawn = picture(plan, every[at], kinds)
    blocks = [("words", every[at].words), ("sent", sent), ("stage", drawn), ("key", KEY)]
    return answer(blocks, chosen, hidden, len(every) - 1)


def picture(plan: Plan, moment: Moment, kinds: Sequence[str]) -> str:
    count, left = plan.devices * plan.replicas, MARGIN + NAMES
    pitch = min(132, (WIDTH - left - MARGIN) / count)
    box, drawn = (pitch - 4 - WAITING) / len(kinds), []
    for row, layer in enumerate(plan.layers):
        y, bold = HEAD + row * ROW, ["bold"] * (layer in moment.about)
        drawn.append(svg.text(MARGIN, y + HIGH / 2 + 4, layer, *bold, anchor="start"))
        for device in range(count):
            for i in range(moment.inputs[layer][device % plan.devices]):
                place = left + device * pitch, y + HIGH - 7 - 7.5 * i, 5.0, 7.0
                drawn.append(svg.rect(place, "data-cell", share=0.9))
            for i, kind in enumerate(kinds):
                x = left + device * pitch + WAITING + i * box
                place = x, y, box - (4 if box > 20 else 1.5), HIGH
                drawn += tensors(plan, moment, (layer, kind, device % plan.devices), place)
    for device in range(count):
        x = left + device * pitch + WAITING
        name = f"device {device}" if pitch > 60 else str(device)
        drawn.append(svg.text(x + (pitch - 11) / 2, 16, name, "muted"))
        for i, kind in enumerate(kinds):
            label = kind if svg.fits(kind, box) else kind[0]
            drawn.append(svg.text(x + (i + 0.5) * box - 1, 32, label, "muted"))
    shown = HEAD + len(plan.layers) * ROW, drawn
    return plans.stacked("Who has what", moment.words, shown, plans.legend(LEGEND))


def tensors(
    plan: Plan, moment: Moment, which: tuple[str, str, int], place: svg.Place
) -> Iterator[str]:
    """What a device has of a layer's kind: the weight, and its bias in a narrow box beside it."""
    (layer, kind, device), (x, y, wide, high) = which, place
    bias = min(12, wide * 0.15)
    boxes = {"weight": (x, y, wide - bias - 2, high), "bias": (x + wide - bias, y, bias, high)}
    for end, outline in boxes.items() if wide >= LEAST else [("weight", place)]:
        name = f"{layer}.{end}"
        held = [x for x in moment.state[kind][name][device] if x[0].stop > x[0].start]
        for part, role in held:
            where = filled(part, plan.shapes[name], outline)
            yield svg.rect(where, COLOURS[kind], radius=2, share=SHARES[f"{kind} {role}"])
        came = held and moment.moved == kind and layer in moment.about
        yield svg.rect(outline, "got" if came else "ghost", radius=2)
