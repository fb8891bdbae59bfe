"""The picture of who has what: each device's part of each layer's weight and bias."""

import math
from collections.abc import Iterator
from typing import Final

from common.chapters.strategies import StrategiesOptions
from common.drawing import svg
from common.parallel.layouts import Part
from common.parallel.plans import Plan

WIDTH: Final = 480
MARGIN: Final = 16
NAMES: Final = 52
"""What the names of layers take."""

HIGH: Final = 40
"""The height of a weight, and of a bias beside it."""

ROW: Final = 52
"""From one layer to the next one below."""

WIDEST: Final = 132
"""The most that is from one device to the next one."""


def who_has_what(strategy: str, devices: int, replicas: int = 1) -> str:
    """Which device keeps which part of which weight: filled, in an outline of the whole.

    The first axis of a weight runs down, the second one to the right.
    """
    options = StrategiesOptions(strategy, replicas=replicas, microbatches=1)
    plan = options.plan(devices)
    pitch = min(WIDEST, (WIDTH - 2 * MARGIN - NAMES) / devices)
    drawn: list[str] = []
    for number in range(devices):
        x = MARGIN + NAMES + number * pitch
        name = f"device {number}" if pitch > 60 else str(number)
        drawn.append(svg.text(x + (pitch - 12) / 2, 26, name, "muted"))
        for row, layer in enumerate(plan.layers):
            y = 38 + ROW * row
            if number == 0:
                middle = y + HIGH / 2 + 4
                drawn.append(svg.text(MARGIN, middle, layer, "bold", anchor="start"))
            drawn += _layer(plan, layer, number % plan.devices, (x, y, pitch - 12))
    rows = f" in {replicas} rows" if replicas > 1 else ""
    title = f"Who has what: {strategy}, {devices} devices{rows}"
    held = (
        f"Each of {devices} devices keeps a part of the weight and the bias of each layer. "
        f"The way to split is {strategy}. {_told(plan)}"
    )
    return svg.picture(WIDTH, 38 + ROW * len(plan.layers), title, held, drawn)


def _layer(plan: Plan, layer: str, device: int, place: tuple[float, float, float]) -> Iterator[str]:
    """What a device has of one layer: the weight, and the bias in a narrow box beside it."""
    x, y, width = place
    for kind, left, wide in (("weight", x, width - 18), ("bias", x + width - 12, 12)):
        name = f"{layer}.{kind}"
        yield svg.rect(left, y, wide, HIGH, "ghost", radius=2)
        if (part := plan.weights[name][device]) is not None:
            yield _filled(part, plan.shapes[name], (left, y, wide))


def _filled(part: Part, shape: tuple[int, ...], place: tuple[float, float, float]) -> str:
    """The part in the outline; a slice of the numbers in one row is drawn from the top down."""
    x, y, wide = place
    length = math.prod(shape) if part.axis is None else shape[part.axis]
    start, stop = part.start / length, part.stop / length
    if part.axis == 1:
        return svg.rect(x + wide * start, y, wide * (stop - start), HIGH, "cell", share=0.6)
    return svg.rect(x, y + HIGH * start, wide, HIGH * (stop - start), "cell", share=0.6)


def _told(plan: Plan) -> str:
    """How many numbers each device of a row keeps."""
    held = [
        sum(part.size(plan.shapes[k]) for k, lay in plan.weights.items() if (part := lay[i]))
        for i in range(plan.devices)
    ]
    return f"Numbers kept: {', '.join(f'{each:,}' for each in held)}."
