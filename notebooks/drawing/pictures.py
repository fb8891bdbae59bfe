"""The pictures of the chapters, as SVG: strategies, plans and allreduces."""

import base64
import re
from html import escape, unescape
from pathlib import Path
from typing import Final
from xml.sax import saxutils as xml

from common.drawing import plans
from common.drawing.theme import style
from common.parallel.nets import transformer
from common.parallel.pipelines import IN_FLIGHT, order, simulate
from common.parallel.strategies import split
from notebooks.drawing.steps import memory_over_time as memory_over_time, overlap as overlap
from notebooks.drawing.storyboard import allreduce as allreduce
from notebooks.drawing.tokens import attention as attention

SVG: Final = "image/svg+xml"


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
