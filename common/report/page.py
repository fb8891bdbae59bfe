"""The verdict as a page: one file that runs nothing and fetches nothing."""

import base64
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.chapters.chapters import CHAPTERS, spec
from common.compare.checks import SuiteResult
from common.compare.findings import Verdict
from common.diagnose.suspects import Suspect
from common.report.plots import Line, Panel, plot
from common.report.text import columns, conclusion, describe, not_run, rows, subtitle
from common.terminal.text import printable


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
    """The URI of a picture of a suite's losses and their distance from the reference."""
    if not examined.runs:
        return ""
    losses, distances = [], []
    for run in examined.runs:
        ours = run.arrays["losses"]
        expected = examined.others(run).get("losses", np.empty(0))
        line = run.record.framework, run.devices, np.arange(1, len(ours) + 1)
        losses.append(Line(*line, ours))
        if expected.shape == ours.shape:
            with np.errstate(all="ignore"):
                far = np.abs(ours - expected) / (np.abs(expected).max() or 1.0)
            distances.append(Line(*line, far))
    compared = len(examined.runs[0].compared(examined.runs[0].arrays)["losses"])
    checks = [check for check in examined.comparison.checks if check.check == "trajectory"]
    limits = [(compared, check.tolerance) for check in checks if check.tolerance]
    image = plot(
        [
            Panel("step", "training loss", losses),
            Panel("step", "relative distance", distances, log=True, limits=limits[:1]),
        ]
    )
    # An image within the page can run nothing, and fetch nothing.
    return "data:image/svg+xml;base64," + base64.b64encode(image.encode()).decode()
