"""The pictures of the chapters, as SVG: how training is split, and what an allreduce does."""

from collections.abc import Iterator, Sequence
from typing import Final

from common.base.errors import RunError
from common.drawing import svg
from common.drawing.plans import (
    memory as memory,
    step,
    timelines as timelines,
    who_has_what as who_has_what,
)
from common.parallel.costs import predicted
from common.parallel.nets import dense
from common.parallel.plans import split
from common.parallel.shards import shard_sizes
from notebooks.drawing.storyboard import allreduce as allreduce

WIDTH: Final = 480
LEFT: Final = 16

LAYERS: Final = 4
ROWS: Final = 8
"""The examples in the small drawing of a minibatch."""

BAR: Final = 44
"""The height of a whole layer, and of a whole minibatch."""

FRAME: Final = 74
"""The height of a device with a layer in it."""

BETWEEN: Final = 30
"""From one device to the next one below."""

Point = tuple[float, float]


def planned_pipeline() -> str:
    """A pipeline whose stages are alike, as `python -m common.plan` draws it."""
    plan = split(dense(100_000_000, 32), "pipeline", 4, microbatches=8)
    return step(plan, predicted(plan, 8192, 4))


def three_splits() -> str:
    """The ways to split training over two devices: by layers, within layers, by data."""
    panels = (
        ("By layers (pipeline parallelism)", "some of the layers, the whole minibatch", _pipeline),
        (
            "Within layers (tensor parallelism)",
            "a part of every layer, the whole minibatch",
            _tensor,
        ),
        ("By data (data parallelism)", "all the layers, a part of the minibatch", _data),
    )
    parts: list[str] = []
    y = 12.0
    for title, holds, draw in panels:
        parts.append(svg.text(LEFT, y + 18, title, "bold", size=15, anchor="start"))
        parts.append(svg.text(LEFT, y + 37, f"Each device: {holds}.", "muted", anchor="start"))
        drawn, y = draw(y + 50)
        parts += drawn
        if draw is not _data:
            parts.append(svg.path(f"M{LEFT} {svg.number(y + 14)}H{WIDTH - LEFT}", "rule"))
        y += 18
    described = (
        "By layers, activations go from device to device, and their gradients come back. "
        "Within layers, parts of the activations of every layer go between devices. "
        "By data, only gradients go between devices, once a step."
    )
    return svg.picture(WIDTH, y, "Three ways to split training over devices", described, parts)


def _pipeline(y: float) -> tuple[list[str], float]:
    """Two devices beside each other, with two layers each; the height where it ends."""
    parts = _minibatch(y, range(ROWS), "minibatch")
    for device, x in enumerate((92, 344)):
        parts.append(_device(x, y, 120, device))
        for place in range(2):
            parts += _layer(x + 18 + 54 * place, y, 2 * device + place + 1, (0, 1))
    forward, back = y + 34, y + 52
    parts.append(svg.arrow([(216, forward), (340, forward)], "adds", "head"))
    parts.append(svg.arrow([(340, back), (216, back)], "adds", "head"))
    parts.append(svg.text(278, forward - 8, "activations", "sent", "bold"))
    parts.append(svg.text(278, back + 17, "their gradients", "sent", "bold"))
    return parts, y + FRAME


def _tensor(y: float) -> tuple[list[str], float]:
    """Two devices above each other, with a half of each layer."""
    parts: list[str] = []
    for device in range(2):
        top = y + device * (FRAME + BETWEEN)
        held = (device / 2, (device + 1) / 2)
        parts += _minibatch(top, range(ROWS), "minibatch")
        parts.append(_device(92, top, 250, device))
        for layer in range(LAYERS):
            parts += _layer(120 + 56 * layer, top, layer + 1, held)
    for layer in range(LAYERS):
        parts += _both_ways(120 + 56 * layer + 15, y)
    parts += _label(y, ["parts of the", "activations,", "in every layer"])
    return parts, y + 2 * FRAME + BETWEEN


def _data(y: float) -> tuple[list[str], float]:
    """Two devices above each other, with all layers and half of the minibatch."""
    parts: list[str] = []
    half = ROWS // 2
    for device, name in enumerate(("one half", "the other")):
        top = y + device * (FRAME + BETWEEN)
        parts += _minibatch(top, range(half * device, half * (device + 1)), name)
        parts.append(_device(92, top, 250, device))
        for layer in range(LAYERS):
            parts += _layer(120 + 56 * layer, top, layer + 1, (0, 1))
    parts += _both_ways(217, y)
    parts += _label(y, ["gradients,", "once a step"])
    return parts, y + 2 * FRAME + BETWEEN


def _device(x: float, y: float, width: float, device: int) -> str:
    name = svg.text(x + 8, y + 15, f"device {device}", "muted", anchor="start")
    return svg.rect(x, y, width, FRAME, "frame", radius=6) + name


def _layer(x: float, y: float, layer: int, held: tuple[float, float]) -> Iterator[str]:
    """A layer from top 0 to bottom 1: what a device has of it, and an outline of the rest."""
    top, height = y + 22 + BAR * held[0], BAR * (held[1] - held[0])
    if height < BAR:
        yield svg.rect(x, y + 22, 30, BAR, "ghost")
    yield svg.box(x, top, 30, height, [str(layer)], "cell", 0.3)


def _minibatch(y: float, held: range, name: str) -> list[str]:
    """A minibatch as a stack of examples; those that a device does not get are outlines."""
    step = BAR / ROWS
    stack = [
        svg.rect(
            32, y + 22 + step * row, 30, step - 1.5, "data" if row in held else "ghost", radius=1
        )
        for row in range(ROWS)
    ]
    into = svg.arrow([(66, y + 22 + BAR / 2), (90, y + 22 + BAR / 2)])
    return [*stack, into, svg.text(47, y + 15, name)]


def _both_ways(x: float, y: float) -> Iterator[str]:
    """An arrow between the lower edge of one device and the upper edge of the next, two heads."""
    middle = y + FRAME + BETWEEN / 2
    for end in (y + FRAME + 3, y + FRAME + BETWEEN - 3):
        yield svg.arrow([(x, middle), (x, end)], "adds", "head")


def _label(y: float, lines: Sequence[str]) -> Iterator[str]:
    """What goes between two devices, beside the arrows."""
    top = y + FRAME + BETWEEN / 2 + 4 - svg.LEADING / 2 * (len(lines) - 1)
    for number, line in enumerate(lines):
        at = top + svg.LEADING * number
        yield svg.text(354, at, line, "sent", "bold", anchor="start")


def data_parallelism(k: int = 2, examples: int = 256) -> str:
    """One step of data parallelism on k devices, 2 to 4: more have no room."""
    pitch = (WIDTH - 2 * LEFT + 10) / k
    gradients = [f"g{'₀₁₂₃'[device]}" for device in range(k)]
    parts = [svg.text(WIDTH / 2, 30, f"minibatch of {examples} examples", "bold", size=14)]
    for device, size in enumerate(shard_sizes(examples, k)):
        x = LEFT + pitch * device
        parts += _column(x, pitch - 10, device, f"{size} examples", gradients[device])
    parts.append(svg.rect(LEFT - 8, 262, WIDTH - 2 * LEFT + 16, 34, "bar", radius=6))
    total = f"allreduce: g = {' + '.join(gradients)}"
    parts.append(svg.text(WIDTH / 2, 284, total, "sent", "bold", size=14))
    notes = (
        f"The loss of a shard is divided by all {examples} examples, so g is the",
        "gradient of the mean loss. Every copy of w stays the same.",
    )
    for line, note in enumerate(notes):
        parts.append(svg.text(WIDTH / 2, 398 + 17 * line, note, "muted"))
    described = (
        f"A minibatch of {examples} examples is cut into {k} shards. Each device has a full copy "
        "of the parameters w and computes the gradient of its shard. An allreduce sums the "
        "gradients, and every device makes the same update."
    )
    return svg.picture(WIDTH, 432, f"Data parallelism on {k} devices", described, parts)


def _column(x: float, width: float, device: int, shard: str, gradient: str) -> Iterator[str]:
    """What one device does in a step, from top to bottom."""
    middle, inner = x + width / 2, (x + 6, width - 12)
    yield svg.box(x, 42, width, 28, [shard], "data-cell", 0.25)
    yield svg.arrow([(middle, 72), (middle, 92)])
    yield svg.rect(x, 94, width, 280, "frame", radius=6)
    yield svg.text(middle, 112, f"device {device}", "muted")
    yield svg.box(inner[0], 122, inner[1], 42, ["full copy of", "parameters w"], "cell", 0.3)
    yield svg.arrow([(middle, 166), (middle, 190)])
    yield svg.box(
        inner[0], 192, inner[1], 42, [f"gradient {gradient}", "of its shard"], "sent-cell", 0.2
    )
    yield svg.arrow([(middle, 236), (middle, 260)], "adds", "head")
    yield svg.arrow([(middle, 298), (middle, 320)], "adds", "head")
    yield svg.box(inner[0], 322, inner[1], 42, ["same update:", "w ← w − η g"], "cell", 0.3)


def drawn(expression: str) -> str:
    """The picture that an expression of this module gives. Raises RunError if none."""
    try:
        # The expression stands in a text of the project, like any of its code.
        return str(eval(expression, dict(globals())))
    except Exception as error:
        raise RunError(f"there is no picture {expression}: {error}") from None
