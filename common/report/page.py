"""The verdict as a page: one file, with nothing in it that runs or that is elsewhere."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from common.base.errors import RunError
from common.chapters.chapters import SPECS
from common.compare.accuracy import setting as accuracy_setting
from common.compare.checks import Run, allowed
from common.compare.collect import LoadedRecord
from common.compare.criteria import CRITERIA
from common.compare.findings import HEADINGS, Check
from common.compare.layerwise import LayerDivergence, LayerTable
from common.compare.suite import SuiteResult, Verdict
from common.compare.tolerances import Tolerance
from common.diagnose.suspects import Suspect, suspects
from common.report import provenance, speed as speeds
from common.report.figures import Picture, dots, epochs, losses
from common.report.text import columns, conclusion, frameworks, layer_rows, subtitle
from common.seeds import text as seeds_text
from common.seeds.spread import read_spread
from common.terminal.text import printable

TEMPLATES: Final = Path(__file__).parent / "templates"

LACKING: Final = {"devices": "alone", "forward": "no limit"}
"""What a run lacks whose check has found nothing to compare, else the check's name."""


@dataclass(frozen=True)
class Line:
    """One check of a run, in words."""

    heading: str
    passed: bool
    figure: str
    limit: str
    tolerance: Tolerance | None
    where: str
    step: str


@dataclass(frozen=True)
class Cell:
    """One run of the grid. `figure` is its worst number, as a share of the limit."""

    anchor: str
    found: LoadedRecord
    passed: bool
    figure: str
    worst: str
    lines: list[Line]

    @property
    def command(self) -> list[str]:
        """The command that made the record, each word as a shell takes it."""
        return [*map(shlex.quote, self.found.record.command if self.found.record else [])]

    @property
    def dtype(self) -> str:
        """The type of the run's numbers; empty without a record."""
        return self.found.record.config.dtype if self.found.record else ""


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


@dataclass(frozen=True)
class Chance:
    """A line on the setting or on what is wrong with the file, and what the file says."""

    line: str
    picture: Picture | None = None
    tables: list[provenance.Table] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


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
        limits=limits(sections),
        layered=layered,
        layer_rows=layer_rows,
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


def limits(sections: Sequence[Section]) -> dict[Tolerance, list[str]]:
    """Every tolerance that a check applied, and what to: a chapter and dtype, and the check."""
    made: dict[Tolerance, dict[str, None]] = {}
    for each in sections:
        for run in (run for row in each.rows.values() for run in row if run.found.run):
            for line in run.lines:
                if line.tolerance:
                    told = f"{each.chapter}, {run.dtype}: {line.heading}"
                    made.setdefault(line.tolerance, {})[told] = None
    return {tolerance: list(told) for tolerance, told in made.items()}


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
            for framework in columns(comparison)
        },
        pictures=pictures,
        long=long,
        speeds=speeds.of_records([run.record for run in runs]) if runs else None,
    )


def setting(examined: SuiteResult) -> str:
    """What sets a suite apart from the others of its chapter."""
    name, config = examined.comparison.suite, examined.comparison.config
    if config is None:
        return ""
    kind = [] if config.dtype in name else [config.dtype]
    return ", ".join([*kind, *config.options.set_apart(name)])


def cell(found: LoadedRecord, examined: SuiteResult) -> Cell:
    """A run of the grid, with its checks."""
    checks = examined.checks(found)
    shares = {HEADINGS[each.check]: share for each in checks if (share := each.share) >= 0}
    worst = max(shares, key=lambda heading: shares[heading], default="")
    share, passed = shares.get(worst, -1.0), all(check.passed for check in checks)
    return Cell(
        anchor=anchor(found, examined),
        found=found,
        passed=passed,
        # A run may fail for something that has no number, however good its numbers are.
        figure=short(share) if share >= 0 and passed == (share <= 1) else state(found, checks),
        worst=worst,
        lines=[line(check, found) for check in checks],
    )


def state(found: LoadedRecord, checks: Sequence[Check]) -> str:
    """Why no number tells how a run stands, in a word."""
    lacking = next((each.check for each in checks if not each.passed and not each.tolerance), "")
    if lacking != "record":
        return LACKING.get(lacking, lacking)
    if found.record is None:
        return "no record"
    return "refused" if found.record.status == "complete" else found.record.status


def short(number: float) -> str:
    """A number above 0 in at most five characters or so."""
    if number == math.inf:
        return "∞"
    if 1e-2 <= number < 1e3 or number == 0:
        return f"{number:.2g}" if number < 100 else f"{number:.0f}"
    digits, _, exponent = f"{number:.0e}".partition("e")
    return f"{digits}e{int(exponent)}"


def anchor(found: LoadedRecord, examined: SuiteResult) -> str:
    """The anchor of a run on the page."""
    comparison = examined.comparison
    return f"{comparison.chapter}-{comparison.suite}-{found.framework}-{found.devices}"


def line(check: Check, found: LoadedRecord) -> Line:
    """A check in words."""
    where, step = place(check, found.run) if found.run else ("", "")
    if check.distance is not None:
        figure = f"{check.distance:.2e}"
    elif check.comparable:
        figure = "yes" if check.passed else "no"
    else:
        figure = "not finite"
    return Line(
        heading=HEADINGS[check.check],
        passed=check.passed,
        figure=figure,
        limit="exact" if check.tolerance is None else f"{check.tolerance:g}",
        tolerance=tolerance_of(check, found.run) if found.run else None,
        where=check.note or where,
        step=step,
    )


def tolerance_of(check: Check, run: Run) -> Tolerance | None:
    """The tolerance that a check applied; None if it asked for equality, or found none."""
    if check.tolerance is None:
        return None
    criteria = CRITERIA[run.record.chapter]
    if check.check == "curve":
        return criteria.curve
    if check.check in ("accuracy", "spread"):
        table = criteria.floor if check.check == "accuracy" else criteria.spread
        return table[accuracy_setting(run.record)]
    return allowed(run)[check.quantity]


def place(check: Check, run: Run) -> tuple[str, str]:
    """The array, with the entry, and the step at which a check found the largest distance."""
    if check.tolerance is None or check.check in ("curve", "accuracy", "spread"):
        return check.where, ""
    if check.check == "steps":
        return check.where, f"step {check.step}"
    last = f"after step {len(run.record.losses)}"
    steps = {"forward": "before step 1", "gradient": "step 1", "weights": last, "outcome": last}
    if check.quantity == "trajectory":
        return "losses", check.where
    return check.where, steps[check.quantity]


def chance(folder: Path) -> Chance | None:
    """What the seeds below `folder` say; None if there are none."""
    try:
        spread = read_spread(folder / "seeds")
    except RunError as error:
        return Chance(str(error))
    if spread is None:
        return None
    accuracies = {each.framework: each.accuracies for each in spread.frameworks}
    return Chance(
        f"{seeds_text.title(spread)}; written {spread.created}.",
        dots(accuracies, f"{spread.chapter}: test accuracy of every seed"),
        [
            provenance.Table("Test accuracy over the seeds", *seeds_text.framework_rows(spread)),
            provenance.Table("Differences", *seeds_text.difference_rows(spread)),
        ],
        list(seeds_text.findings(spread)),
    )
