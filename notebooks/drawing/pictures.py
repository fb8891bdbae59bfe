"""The pictures of the chapters, as SVG: strategies, plans and allreduces."""

import base64
import math
import re
from html import escape, unescape
from pathlib import Path
from typing import Final
from xml.sax import saxutils as xml

from common.chapters.strategies import StrategiesOptions
from common.drawing import plans, svg
from common.drawing.plans import MARGIN, WIDTH
from common.drawing.theme import style
from common.parallel.nets import transformer
from common.parallel.pipelines import IN_FLIGHT, order, simulate
from common.parallel.plans import Part
from common.parallel.strategies import split
from notebooks.drawing.steps import memory_over_time as memory_over_time, overlap as overlap
from notebooks.drawing.storyboard import allreduce as allreduce

SVG: Final = "image/svg+xml"

HIGH, ROW, WIDEST, NAMES = 40, 52, 132, 52
"""The height of a weight, from one layer to the next, the most from one device to the next,
and the width of layers' names."""


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
                drawn.append(svg.text(MARGIN, top + HIGH / 2 + 4, layer, "bold", anchor="start"))
            for kind, left, wide in (("weight", x, pitch - 30), ("bias", x + pitch - 24, 12)):
                name = f"{layer}.{kind}"
                place = left, top, wide, HIGH
                drawn.append(svg.rect(place, "ghost", radius=2))
                if (part := plan.weights[name][number % plan.devices]) is not None:
                    where = filled(part, plan.shapes[name], place)
                    drawn.append(svg.rect(where, "cell", share=0.6))
    sizes = [plan.sizes_of(plan.weights, i).values() for i in range(plan.devices)]
    kept = [f"{sum(elements):,}" for elements in sizes]
    rows = f" in {replicas} rows" if replicas > 1 else ""
    described = (
        f"Each of {devices} devices keeps a part of the weight and the bias of each layer, "
        f"by the strategy {strategy}. Elements kept: {', '.join(kept)}."
    )
    title = f"Who has what: {strategy}, {devices} devices{rows}"
    return svg.picture(WIDTH, 38 + ROW * len(plan.layers), title, described, drawn)


def filled(part: Part, shape: tuple[int, ...], place: svg.Place) -> svg.Place:
    """Where a part is in the outline of the whole; a flat slice is drawn from the top down."""
    x, y, wide, high = place
    length = math.prod(shape) if part.axis is None else shape[part.axis]
    start, share = part.start / length, (part.stop - part.start) / length
    if part.axis == 1:
        return x + wide * start, y, wide * share, high
    return x, y + high * start, wide, high * share


def timelines(stages: int = 4, microbatches: int = 4) -> str:
    """Every order of a pipeline on one scale: when each device works and waits."""
    events = {name: simulate(order(name, stages, microbatches)) for name in IN_FLIGHT}
    longest = max(event.end for timed in events.values() for event in timed)
    blocks = [
        plans.lanes(plans.TITLES[name], stages, timed, longest) for name, timed in events.items()
    ]
    described = (
        f"{microbatches} microbatches go through {stages} devices, forward and backward. "
        "Each pass takes one unit of time. In empty places of a row, a device waits."
    )
    return plans.stacked("Orders of a pipeline", described, *blocks, plans.legend(plans.PASSES))


def planned_pipeline() -> str:
    """A pipeline whose stages are alike, as `python -m common.plan` draws it."""
    plan = split(transformer(100_000_000, 32), "pipeline", 4, microbatches=8)
    return plans.step(plan, plan.usage(8192, 2, 12))


def three_splits() -> str:
    """Training split over two devices: between layers, within layers, by data."""
    return _from_file("three-splits.svg")


def data_parallelism() -> str:
    """One step of data parallelism on two devices."""
    return _from_file("data-parallelism.svg")


def pair() -> str:
    """A column-parallel layer, a row-parallel one, and the all-reduce after them."""
    return _from_file("pair.svg")


def _from_file(name: str) -> str:
    drawing = Path(__file__).with_name(name).read_text(encoding="utf-8").rstrip()
    return drawing.replace("<style/>", f"<style>{xml.escape(style())}</style>")


def draw(expression: str) -> str:
    """The picture of an expression of a chapter, in this module's names."""
    return str(eval(expression, dict(globals())))


def mime_bundle(svg: str) -> dict[str, str]:
    """The picture by MIME type: as SVG, as an `img` in HTML, and its title as text.

    Jupyter Lab shows the image, but no SVG, of a notebook that another user has run.
    """
    match = re.search(r"<title[^>]*>(.*?)</title>", svg, re.DOTALL)
    title = unescape(match[1]) if match else "a picture"
    data = base64.b64encode(svg.encode()).decode()
    image = f'<img alt="{escape(title)}" src="data:{SVG};base64,{data}">'
    return {SVG: svg, "text/html": image, "text/plain": title}
