"""The verdict as a page: one file that runs nothing and fetches nothing."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.chapters.chapters import SPECS
from common.compare.checks import head
from common.compare.suite import SuiteResult, Verdict, title
from common.diagnose.suspects import suspects
from common.report.plots import Line, Panel, plot
from common.report.text import columns, conclusion, describe, frameworks, not_run, rows, subtitle
from common.terminal.text import printable

TEMPLATES: Final = Path(__file__).parent / "templates"


def page(verdict: Verdict, examined: Sequence[SuiteResult]) -> str:
    """The page as HTML; whatever comes from a file is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value)),
    )
    environment.filters["image"] = Markup
    words = (columns, conclusion, describe, not_run, picture, rows, subtitle, title)
    environment.globals |= {each.__name__: each for each in words}
    found = suspects(examined)
    compared = {name for comparison in verdict.comparisons for name in frameworks(comparison)}
    innocent = compared - {each.framework for each in found}
    return environment.get_template("parity.html").render(
        verdict=verdict,
        suspects=found,
        innocent=[name for name in FRAMEWORKS if name in innocent],
        nets={name: spec.heading for name, spec in SPECS.items()},
        examined=examined,
    )


def picture(examined: SuiteResult) -> str:
    """The URI of a picture of a suite's losses and their distance from the reference, if any."""
    losses, distances, runs = [], [], examined.runs
    for run in runs:
        found, reference = run.arrays["losses"], examined.reference(run)
        place = run.record.framework, run.devices, np.arange(1, len(found) + 1)
        losses.append(Line(*place, found))
        expected = reference.arrays.get("losses", np.empty(0))
        if not reference.alone and expected.shape == found.shape:
            with np.errstate(all="ignore"):
                far = np.abs(found - expected) / (np.abs(expected).max() or 1.0)
            distances.append(Line(*place, far))
    if not runs:
        return ""
    compared = len(head(runs[0], runs[0].arrays)["losses"])
    checks = [x for x in examined.comparison.checks if x.check == "trajectory"]
    limits = [(compared, x.tolerance) for x in checks if x.tolerance][:1]
    panels = [
        Panel("step", "training loss", losses),
        Panel("step", "relative distance", distances, log=True, limits=limits),
    ]
    # An image within the page can run nothing, and fetch nothing.
    return "data:image/svg+xml;base64," + base64.b64encode(plot(panels).encode()).decode()
