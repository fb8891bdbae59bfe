"""The verdict as a page: one file, with nothing in it that runs or that is elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from common.chapters.chapters import SPECS
from common.compare.layerwise import LayerDivergence, LayerTable
from common.compare.suite import Comparison, SuiteResult, Verdict, title
from common.diagnose.suspects import Suspect, suspects
from common.report.figures import losses
from common.report.text import (
    Row,
    columns,
    conclusion,
    describe,
    frameworks,
    layer_rows,
    left_to_grid,
    rows,
    subtitle,
)
from common.terminal.text import printable

TEMPLATES: Final = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Section:
    """One suite: its table, the checks that failed, and the URI of a picture if there are runs."""

    anchor: str
    title: str
    subtitle: str
    frameworks: list[str]
    rows: list[Row]
    failed: list[str]
    picture: str


def page(verdict: Verdict, examined: Sequence[SuiteResult], layered: Sequence[LayerTable]) -> str:
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
    divergences = [divergence for table in layered for divergence in table.divergences()]
    suspected = [pinpointed(suspect, divergences) for suspect in suspects(examined)]
    return environment.get_template("parity.html").render(
        verdict=verdict,
        conclusion=conclusion(verdict),
        not_run=left_to_grid(verdict) if verdict.not_run else "",
        suspects=suspected,
        innocent=innocent(verdict, suspected),
        anchor=anchor,
        nets={name: spec.heading for name, spec in SPECS.items()},
        sections=[section(each) for each in examined],
        layered=layered,
        layer_rows=layer_rows,
    )


def pinpointed(suspect: Suspect, divergences: Sequence[LayerDivergence]) -> Suspect:
    """The suspect with the first layer in which one of its runs diverges, if its logits are off."""
    for divergence in divergences:
        record = divergence.run.record
        if (record.framework, record.chapter) == (suspect.framework, suspect.chapter):
            evidence = [*suspect.evidence, f"Layer by layer, {divergence.text}."]
            layer = (
                divergence.layer.name
                if suspect.divergence.array == "logits/before"
                else suspect.tensor
            )
            return replace(suspect, tensor=layer, evidence=evidence)
    return suspect


def innocent(verdict: Verdict, suspected: Sequence[Suspect]) -> list[str]:
    """The frameworks without a failure."""
    named = {each.framework for each in suspected}
    names = [name for comparison in verdict.comparisons for name in frameworks(comparison)]
    return [name for name in dict.fromkeys(names) if name not in named]


def section(examined: SuiteResult) -> Section:
    """A suite as the page shows it."""
    comparison = examined.comparison
    runs = [each.run for each in examined.found if each.run]
    groups = {k: each for k, each in examined.references.items() if not each.alone}
    expected = {k: each.arrays["losses"] for k, each in groups.items()}
    trajectory = [each.tolerance for each in comparison.checks if each.check == "trajectory"]
    return Section(
        anchor=anchor(comparison),
        title=title(comparison),
        subtitle=subtitle(comparison),
        frameworks=columns(comparison),
        rows=rows(comparison),
        failed=[describe(check) for check in comparison.checks if not check.passed],
        picture=losses(runs, expected, next(iter(trajectory), None)) if runs else "",
    )


def anchor(comparison: Comparison) -> str:
    """The anchor of a suite on the page."""
    return f"{comparison.chapter}-{comparison.suite}"
