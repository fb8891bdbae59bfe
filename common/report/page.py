"""The verdict as a page: one file, with nothing in it that runs or that is elsewhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from common.chapters.chapters import SPECS
from common.compare.suite import Comparison, SuiteResult, Verdict, title
from common.diagnose.suspects import Suspect, suspects
from common.report.figures import losses
from common.report.text import (
    columns,
    conclusion,
    describe,
    frameworks,
    left_to_grid,
    rows,
    subtitle,
)
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
    words = (anchor, columns, describe, picture, rows, subtitle, title)
    environment.globals |= {each.__name__: each for each in words}
    suspected = suspects(examined)
    return environment.get_template("parity.html").render(
        verdict=verdict,
        conclusion=conclusion(verdict),
        not_run=left_to_grid(verdict) if verdict.not_run else "",
        suspects=suspected,
        innocent=innocent(verdict, suspected),
        nets={name: spec.heading for name, spec in SPECS.items()},
        examined=examined,
    )


def innocent(verdict: Verdict, suspected: Sequence[Suspect]) -> list[str]:
    """The frameworks without a failure."""
    named = {each.framework for each in suspected}
    names = [name for comparison in verdict.comparisons for name in frameworks(comparison)]
    return [name for name in dict.fromkeys(names) if name not in named]


def picture(examined: SuiteResult) -> str:
    """The URI of a picture of a suite's losses; empty without runs."""
    runs = examined.evidence.runs
    references = {run.name: examined.reference(run) for run in runs}
    expected = {k: each.arrays["losses"] for k, each in references.items() if not each.alone}
    limits = [x.tolerance for x in examined.comparison.checks if x.check == "trajectory"]
    return losses(runs, expected, next(iter(limits), None)) if runs else ""


def anchor(comparison: Comparison) -> str:
    """The anchor of a suite on the page."""
    return f"{comparison.chapter}-{comparison.suite}"
