"""The pictures of the chapters, as SVG: how training is split, and what an allreduce does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from common.base.errors import RunError
from common.drawing import svg
from common.drawing.plans import (
    memory as memory,
    step,
    timelines as timelines,
    who_has_what as who_has_what,
)
from common.drawing.theme import style
from common.parallel.costs import predicted
from common.parallel.nets import dense
from common.parallel.shards import shard_sizes
from common.parallel.strategies import split
from notebooks.drawing.storyboard import allreduce as allreduce

WIDTH: Final = 480
LEFT: Final = 16


def planned_pipeline() -> str:
    """A pipeline whose stages are alike, as `python -m common.plan` draws it."""
    plan = split(dense(100_000_000, 32), "pipeline", 4, microbatches=8)
    return step(plan, predicted(plan, 8192, 4))


def three_splits() -> str:
    """The ways to split training over two devices: by layers, within layers, by data."""
    drawing = Path(__file__).with_name("three-splits.svg").read_text(encoding="utf-8").rstrip()
    return drawing.replace("<style/>", f"<style>{escape(style())}</style>")


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
