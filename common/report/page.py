"""The verdict as a page: one file that runs nothing and fetches nothing."""

import base64
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import printable
from common.chapters.spec import CHAPTERS, spec
from common.compare.comparison import SuiteResult
from common.compare.findings import Verdict
from common.diagnose.suspects import Suspect
from common.report.plots import Line, Panel, plot
from common.report.text import columns, conclusion, describe, not_run, rows, subtitle


def page(verdict: Verdict, examined: Sequence[SuiteResult], accused: Sequence[Suspect]) -> str:
    """The page as HTML; whatever comes from a file is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value)),
    )
    environment.filters["image"] = Markup
    words = (columns, conclusion, describe, not_run, picture, rows, subtitle)
    environment.globals |= {function.__name__: function for function in words}
    innocent = {x.framework for x in verdict.checks} - {x.framework for x in accused}
    return environment.get_template("parity.html").render(
        verdict=verdict,
        suspects=accused,
        innocent=[name for name in FRAMEWORKS if name in innocent],
        nets={name: spec(name).heading for name in CHAPTERS},
        examined=examined,
    )


def picture(examined: SuiteResult) -> str:
    """The URI of a picture of the losses of a suite's runs."""
    runs = examined.loaded.runs
    if not runs:
        return ""
    lines = []
    for run in runs:
        losses = np.array(run.record.losses)
        lines.append(Line(run.record.framework, run.devices, np.arange(1, len(losses) + 1), losses))
    image = plot([Panel("step", "training loss", lines)])
    # An image within the page can run nothing, and fetch nothing.
    return "data:image/svg+xml;base64," + base64.b64encode(image.encode()).decode()
