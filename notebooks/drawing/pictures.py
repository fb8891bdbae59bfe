"""The pictures of the chapters, as SVG: strategies, plans and allreduces."""

from pathlib import Path
from xml.sax.saxutils import escape

from common.base.errors import RunError
from common.drawing.plans import (
    memory as memory,
    step,
    timelines as timelines,
    who_has_what as who_has_what,
)
from common.drawing.theme import style
from common.parallel.nets import dense
from common.parallel.strategies import split
from notebooks.drawing.storyboard import allreduce as allreduce


def planned_pipeline() -> str:
    """A pipeline whose stages are alike, as `python -m common.plan` draws it."""
    plan = split(dense(100_000_000, 32), "pipeline", 4, microbatches=8)
    return step(plan, plan.usage(8192, 4))


def three_splits() -> str:
    """Training split over two devices: between layers, within layers, by data."""
    return _from_file("three-splits.svg")


def data_parallelism() -> str:
    """One step of data parallelism on two devices."""
    return _from_file("data-parallelism.svg")


def _from_file(name: str) -> str:
    drawing = Path(__file__).with_name(name).read_text(encoding="utf-8").rstrip()
    return drawing.replace("<style/>", f"<style>{escape(style())}</style>")


def draw(expression: str) -> str:
    """The picture of an expression in this module's names. Raises RunError if it fails."""
    try:
        # The expression comes from a chapter: it is code of the project.
        return str(eval(expression, dict(globals())))
    except Exception as error:
        raise RunError(f"there is no picture {expression}: {error}") from None
