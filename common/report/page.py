"""The verdict as a page: one file, with nothing in it that runs or that is elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from common.chapters.chapters import SPECS
from common.compare.layerwise import LayerDivergence, LayerTable
from common.compare.suite import SuiteResult, Verdict
from common.compare.tolerances import Tolerance
from common.diagnose.suspects import Suspect, suspects
from common.report import provenance, speed as speeds
from common.report.figures import Picture, epochs, losses
from common.report.layers import rows
from common.report.run_cells import Cell, anchor, cell, limits
from common.report.seeds import chance
from common.report.text import conclusion, frameworks, subtitle
from common.terminal.text import printable

TEMPLATES: Final = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Section:
    """One suite: a row of the grid, its pictures and figures."""

    anchor: str
    chapter: str
    name: str
    setting: str
    subtitle: str
    rows: dict[str, list[Cell]]
    pictures: list[Picture]
    long: bool
    speeds: provenance.Table | None


def page(
    folder: Path,
    verdict: Verdict,
    examined: Sequence[SuiteResult],
    layered: Sequence[LayerTable],
) -> str:
    """The page as HTML, with what else is in `folder`; whatever comes from a file is escaped."""
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
    records = [each.record for suite in examined for each in suite.found if each.record]
    sections = [section(each) for each in examined]
    divergences = [divergence for table in layered for divergence in table.divergences()]
    suspected = [pinpointed(suspect, divergences) for suspect in suspects(examined)]
    return environment.get_template("parity.html").render(
        verdict=verdict,
        conclusion=conclusion(verdict),
        suspects=suspected,
        innocent=innocent(verdict, suspected),
        anchor=anchor,
        nets={name: spec.heading for name, spec in SPECS.items()},
        frameworks=list(dict.fromkeys(name for each in sections for name in each.rows)),
        chapters={
            chapter: [each for each in sections if each.chapter == chapter]
            for chapter in dict.fromkeys(each.chapter for each in sections)
        },
        limits=limits(applied(sections)),
        layered=layered,
        layer_rows=rows,
        benchmark=speeds.benchmark(folder),
        chance=chance(folder),
        begun=provenance.begun(records),
        provenance=provenance.tables(records),
    )


def pinpointed(suspect: Suspect, divergences: Sequence[LayerDivergence]) -> Suspect:
    """The suspect with the first layer in which one of its runs diverges, if its logits are off."""
    for divergence in divergences:
        record = divergence.run.record
        if (record.framework, record.chapter) == (suspect.framework, suspect.chapter):
            evidence = [*suspect.evidence, f"Layer by layer, {divergence.said()}."]
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


def applied(sections: Sequence[Section]) -> Iterator[tuple[Tolerance | None, str]]:
    """Every tolerance that a check applied, and what to: a chapter and dtype, and the check."""
    for each in sections:
        for run in (run for row in each.rows.values() for run in row if run.found.run):
            for line in run.lines:
                yield line.tolerance, f"{each.chapter}, {run.dtype}: {line.heading}"


def section(examined: SuiteResult) -> Section:
    """A suite as the page shows it."""
    comparison = examined.comparison
    runs = [each.run for each in examined.found if each.run]
    groups = {k: each for k, each in examined.references.items() if not each.alone}
    expected = {k: each.arrays["losses"] for k, each in groups.items()}
    trajectory = [each.tolerance for each in comparison.checks if each.check == "trajectory"]
    name = f"{comparison.chapter}, {comparison.suite}"
    pictures = [losses(runs, expected, next(iter(trajectory), None), name)] if runs else []
    long = any(len(run.record.epochs) > 1 for run in runs)
    if long:
        pictures.append(epochs(runs, name))
    return Section(
        anchor=f"{comparison.chapter}-{comparison.suite}",
        chapter=comparison.chapter,
        name=comparison.suite,
        setting=setting(examined),
        subtitle=subtitle(comparison),
        rows={
            framework: [
                cell(each, examined) for each in examined.found if each.framework == framework
            ]
            for framework in frameworks(comparison)
        },
        pictures=pictures,
        long=long,
        speeds=speeds.of_runs(runs) if runs else None,
    )


def setting(examined: SuiteResult) -> str:
    """What sets a suite apart from the others of its chapter."""
    name, config = examined.comparison.suite, examined.comparison.config
    if config is None:
        return ""
    kind = [] if config.dtype in name else [config.dtype]
    return ", ".join([*kind, *config.options.set_apart(name)])
