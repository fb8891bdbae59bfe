"""ZeRO, moment by moment: which device has which part of which weight, gradient and momentum."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from common.drawing import plans, svg
from common.drawing.plans import MARGIN, WIDTH
from common.parallel.plans import Part, Plan
from common.scaling.scenario import Scenario
from notebooks.drawing.pictures import NAMES, filled
from notebooks.explorers.forms import (
    Choice,
    Control,
    Form,
    answer,
    quantity,
    select,
    slider,
    values,
)

TITLE: Final = "Which device has what, moment by moment"

FORM: Final[Form] = [
    [
        select("strategy", ("data", "zero1", "zero2", "zero3"), "zero3"),
        Control("devices", 4, range(1, 9)),
    ],
    [slider("moment")],
]

Held = tuple[tuple[str, float], ...]
"""What a device has of a layer: all of it or its slice, and how dark each is drawn."""

ALL: Final[Held] = (("all", 0.9),)
SLICE: Final[Held] = (("slice", 0.9),)
PALE: Final[Held] = (("all", 0.3),)
BOTH: Final = PALE + SLICE

COLOURS: Final = {"weights": "cell", "gradients": "sent-cell", "momentum": "cell"}

KEY: Final = """w, g, m: weights, gradients, momentum. Pale: weights that are gathered for a moment
or wait for new values, gradients that are not summed yet. A thick outline: it has just come from
other devices."""

HEAD, ROW, HIGH = 40, 38, 30
"""Of the picture: above the rows of layers, a row, a box."""


class Moment(NamedTuple):
    """What happens to some layers, what devices have by kind and layer, and elements sent."""

    words: str
    about: Sequence[str]
    state: Mapping[str, Mapping[str, Held]]
    moved: str = ""
    sent: int = 0


def moments(plan: Plan) -> Iterator[Moment]:
    """A step of momentum SGD in one microbatch; devices differ only in which slice they have."""
    count, layers = plan.devices * plan.replicas, plan.layers
    stage = int(plan.strategy[-1]) if plan.sharded else 0
    state = {
        "weights": dict.fromkeys(layers, SLICE if stage == 3 else ALL),
        "gradients": dict.fromkeys(layers, Held()),
        "momentum": dict.fromkeys(layers, SLICE if stage else ALL),
    }

    def note(
        words: str, about: Sequence[str] = (), moved: str = "", times: int = 1, **held: Held
    ) -> Moment:
        """A moment in which layers are held otherwise, and are sent `times` by all devices."""
        now = {kind: dict(layers) for kind, layers in state.items()}
        for kind, parts in held.items():
            now[kind] |= dict.fromkeys(about, parts)
        sent = times * (count - 1) * sum(map(plan.size, about)) if moved else 0
        return Moment(words, about, now, moved if sent else "", sent)

    yield note("Before the step: there are no gradients yet.")
    for layer in layers:
        start = f"Forward, {layer}: each device"
        if stage == 3:
            words = f"{start} gathers the weights, computes, and lets them go."
            yield note(words, [layer], "weights", weights=BOTH)
        else:
            yield note(f"{start} computes with its own examples and the whole weights.", [layer])
    for layer in reversed(layers):
        words = f"Backward, {layer}: each device has the gradient of its own examples."
        gathers = {"moved": "weights", "weights": BOTH} if stage == 3 else {}
        words += " The weights are gathered again." * (stage == 3)
        yield note(words, [layer], gradients=PALE, **gathers)  # type: ignore[arg-type]
        state["gradients"][layer] = PALE
        if stage > 1:
            words = f"The gradient of {layer} is scattered: each device sums its slice."
            yield note(words, [layer], "gradients", gradients=BOTH)
            state["gradients"][layer] = SLICE
    if stage == 1:
        words = "All gradients are scattered: each device sums its slices."
        yield note(words, layers, "gradients", gradients=BOTH)
    if stage == 0:
        words = "Device 0 sums the gradients of all devices, and sends the sum to all."
        yield note(words, layers, "gradients", 2, gradients=ALL)
    state["gradients"] = dict.fromkeys(layers, SLICE if stage else ALL)
    if stage in (1, 2):
        words = "Update: each device has new weights of its slice; the rest is still old."
        yield note(words, layers, weights=BOTH)
        words = "The new weights are gathered: each device gets all other slices."
        yield note(words, layers, "weights", weights=ALL)
    else:
        yield note("Update: each device updates its weights. Nothing is sent.", layers)
    state["gradients"] = dict.fromkeys(layers, ())
    yield note("After the step: all is as before, with new values.")


def figure(choice: Choice) -> str:
    chosen = values(FORM, choice)
    plan = Scenario(chosen["strategy"], chosen["devices"]).plan()
    shown = list(moments(plan))
    chosen["moment"] = at = min(chosen["moment"], len(shown) - 1)
    so_far = [quantity(4 * size, "B") for size in accumulate(moment.sent for moment in shown)]
    sent = f"Sent by all devices: {so_far[at]} so far, {so_far[-1]} in the whole step."
    drawn = picture(plan, shown[at])
    last = len(shown) - 1
    return answer(chosen, last=last, words=shown[at].words, sent=sent, stage=drawn, key=KEY)


def picture(plan: Plan, moment: Moment) -> str:
    """A row for each layer, a column for each device with its three kinds of tensors."""
    count, left = plan.devices * plan.replicas, MARGIN + NAMES
    pitch = min(132, (WIDTH - left - MARGIN) / count)
    box, drawn = (pitch - 8) / 3, []
    for device in range(count):
        x = left + device * pitch
        name = f"device {device}" if pitch > 60 else str(device)
        drawn.append(svg.text(x + (pitch - 8) / 2, 16, name, "muted"))
        for i, kind in enumerate(COLOURS):
            label = kind if svg.fits(kind, box) else kind[0]
            drawn.append(svg.text(x + (i + 0.5) * box - 1, 32, label, "muted"))
            for row, layer in enumerate(plan.layers):
                place = x + i * box, HEAD + row * ROW, box - 3, HIGH
                slice_ = plan.updated[f"{layer}.weight"][device % plan.devices] or Part(0, 0, 1)
                for what, share in moment.state[kind][layer]:
                    part, shape = slice_, plan.shapes[f"{layer}.weight"]
                    where = filled(part, shape, place) if what == "slice" else place
                    drawn.append(svg.rect(where, COLOURS[kind], radius=2, share=share))
                came = moment.moved == kind and layer in moment.about
                drawn.append(svg.rect(place, "got" if came else "ghost", radius=2))
    for row, layer in enumerate(plan.layers):
        bold = ["bold"] * (layer in moment.about)
        y = HEAD + row * ROW + HIGH / 2 + 4
        drawn.append(svg.text(MARGIN, y, layer, *bold, anchor="start"))
    return plans.stacked(TITLE, moment.words, (HEAD + len(plan.layers) * ROW, drawn))
