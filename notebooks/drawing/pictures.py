"""The pictures of the chapters, as SVG: strategies, plans and allreduces."""

import base64
import re
from html import escape, unescape
from itertools import product
from pathlib import Path
from typing import Final
from xml.sax import saxutils as xml

from common.drawing import plans, svg
from common.drawing.theme import style
from common.parallel.nets import transformer
from common.parallel.pipelines import IN_FLIGHT, order, simulate
from common.parallel.strategies import split
from notebooks.drawing.steps import memory_over_time as memory_over_time, overlap as overlap
from notebooks.drawing.storyboard import allreduce as allreduce

SVG: Final = "image/svg+xml"

TOKENS, CELL, LEFT, TOP = 12, 15, 34, 46
"""The length of the sequence; the size of a cell; where a panel's cells begin."""

OWNERS: Final[list[plans.Style]] = [("cell", 0.35), ("sent-cell", 0.4), ("data-cell", 0.45)]
"""How each device's queries are drawn."""


def timelines(stages: int = 3, microbatches: int = 4) -> str:
    """Every order of a pipeline on one scale: when each device works and waits."""
    events = {name: simulate(order(name, stages, microbatches)) for name in IN_FLIGHT}
    longest = max(event.end for timed in events.values() for event in timed)
    blocks = [
        plans.lanes(plans.TITLES[name], stages, timed, longest) for name, timed in events.items()
    ]
    described = (
        f"{microbatches} microbatches go through {stages} devices, forward and backward. "
        "A backward pass takes two units of time, any other pass, and each half of a backward "
        "pass, one. In empty places of a row, a device waits."
    )
    return plans.stacked("Orders of a pipeline", described, *blocks, plans.legend(plans.PASSES))


def planned_pipeline() -> str:
    """A pipeline whose stages are alike, as `python -m common.plan` draws it."""
    plan = split(transformer(100_000_000, 32), "pipeline", 4, microbatches=8)
    return plans.step(plan, plan.usage(8192, 2, 12))


def attention(devices: int = 3) -> str:
    """The attention of a sequence by tokens, side by side and in zigzag order, as SVG."""
    shapes = panel(devices, "contiguous")
    shapes += [f'<g transform="translate(234 0)">{shape}</g>' for shape in panel(devices, "zigzag")]
    notes = (
        "A row is a query, a column a key; its device is beside it. A number says",
        "after how many hops of the ring the query's device meets the key.",
    )
    height = TOP + (TOKENS + devices + 2) * CELL + 14
    for line, note in enumerate(notes):
        shapes.append(svg.text(LEFT - 20, height + 17 * line, note, "muted", anchor="start"))
    described = f"{TOKENS} tokens on {devices} devices. Numbers of scores by device and hop."
    return svg.picture(plans.WIDTH, height + 30, "Attention in a ring", described, shapes)


def panel(devices: int, order: str) -> list[str]:
    """The scores that a causal mask leaves, and their number by device and hop."""
    net = transformer(0, 1, 12, 3, tokens=TOKENS, sequence=TOKENS)
    plan = split(net, "context", devices, contiguous=order == "contiguous")
    owner = {token: i for i in range(devices) for token in plan.tokens_of(i)}
    shapes = [svg.text(LEFT, 28, order.capitalize(), "bold", size=14, anchor="start")]
    counts = [[0] * devices for _ in range(devices)]
    for query, key in product(range(TOKENS), repeat=2):
        x, y = LEFT + key * CELL, TOP + query * CELL
        if key == 0:
            shapes.append(svg.text(LEFT - 12, y + 11, str(owner[query]), "muted", size=10))
        if query == 0:
            shapes.append(svg.text(x + CELL / 2, TOP - 5, str(owner[key]), "muted", size=10))
        if key <= query:
            hop = (owner[query] - owner[key]) % devices
            counts[owner[query]][hop] += 1
            place = x, y, CELL - 1.0, CELL - 1.0
            part, share = OWNERS[owner[query] % len(OWNERS)]
            shapes.append(svg.rect(place, part, share=share))
            shapes.append(svg.text(x + CELL / 2, y + 11, str(hop), size=9))
    for device, row in enumerate(counts):
        told = ", ".join(f"hop {hop}: {count}" for hop, count in enumerate(row))
        y = TOP + (TOKENS + device + 1) * CELL + 4
        shapes.append(svg.text(LEFT - 20, y, f"device {device}: {told}", size=10, anchor="start"))
    return shapes


def drawing(name: str) -> str:
    """A drawing of this folder, in the colours of all pictures."""
    text = Path(__file__).with_name(f"{name}.svg").read_text(encoding="utf-8").rstrip()
    return text.replace("<style/>", f"<style>{xml.escape(style())}</style>")


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
