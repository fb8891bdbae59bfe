"""The verdict as a page: one file, with nothing in it that runs or that is elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from common.checks import Check, numerical_checks
from common.gather import Found
from common.pictures import Picture, accuracies, losses
from common.report import HEADINGS, NO_DISTANCE, conclusion, frameworks, subtitle, title
from common.verdict import Verdict

if TYPE_CHECKING:
    from common.parity import Examined

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Line:
    """One check of a run, in words."""

    heading: str
    passed: bool
    figure: str
    limit: str
    measured: str
    where: str


@dataclass(frozen=True)
class Cell:
    """One run of the grid."""

    anchor: str
    devices: int
    passed: bool
    figure: str
    checks: list[Line]
    command: str


@dataclass(frozen=True)
class Row:
    """One framework's runs of a suite."""

    framework: str
    cells: list[Cell]


@dataclass(frozen=True)
class Section:
    """One suite."""

    title: str
    subtitle: str
    devices: list[int]
    rows: list[Row]
    pictures: list[Picture]


@dataclass(frozen=True)
class Culprit:
    """A framework that parts from the others in a suite, and where it does so first."""

    who: str
    what: str
    anchor: str


def page(verdict: Verdict, examined: Sequence["Examined"]) -> str:
    """The page as HTML; whatever comes from a record is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    runs = [found.run for each in examined for found in each.found if found.run]
    return environment.get_template("parity.html").render(
        verdict=verdict,
        conclusion=conclusion(verdict),
        culprits=[culprit for each in examined for culprit in culprits(each)],
        suites=[section(each) for each in examined],
        records=[run.record for run in runs],
    )


def section(examined: "Examined") -> Section:
    """A suite as the page shows it."""
    comparison = examined.comparison
    runs = [each.run for each in examined.found if each.run]
    expected = {k: answer.arrays["losses"] for k, answer in examined.answers.items()}
    name = title(comparison)
    pictures = [losses(runs, expected, name)] if runs else []
    if any(len(run.record.epochs) > 1 for run in runs):
        pictures.append(accuracies(runs, name))
    return Section(
        title=name,
        subtitle=subtitle(comparison),
        devices=sorted({each.devices for each in examined.found}),
        rows=[
            Row(
                framework,
                [cell(each, examined) for each in examined.found if each.framework == framework],
            )
            for framework in frameworks(comparison)
        ],
        pictures=pictures,
    )


def cell(found: Found, examined: "Examined") -> Cell:
    """A run of the grid, with its checks."""
    checks = checks_of(found, examined)
    shares = [share for share in map(share_of_limit, checks) if share is not None]
    return Cell(
        anchor=anchor(found, examined),
        devices=found.devices,
        passed=all(check.passed for check in checks),
        figure=f"{max(shares):.1e}" if shares and max(shares) < NO_DISTANCE else "no figure",
        checks=[line(check, found) for check in checks],
        command=" ".join(found.run.record.command) if found.run else "",
    )


def checks_of(found: Found, examined: "Examined") -> list[Check]:
    """The checks of one run."""
    who = found.framework, found.devices
    return [each for each in examined.comparison.checks if (each.framework, each.devices) == who]


def share_of_limit(check: Check) -> float | None:
    """A check's distance as a share of its limit, where it has both."""
    if check.check == "accuracy" or check.distance is None or not check.tolerance:
        return None
    return check.distance / check.tolerance


def anchor(found: Found, examined: "Examined") -> str:
    """The name of a run's place on the page."""
    comparison = examined.comparison
    return f"{comparison.chapter}-{comparison.suite}-{found.framework}-{found.devices}"


def line(check: Check, found: Found) -> Line:
    """A check in words."""
    known = numerical_checks(found.run) if found.run else {}
    measured = f"{known[check.check][1].measured:.1e}" if check.check in known else ""
    if check.distance is None:
        figure = "yes" if check.passed else "no"
    else:
        figure = f"{check.distance:.2e}" if check.distance < NO_DISTANCE else "none"
    return Line(
        heading=HEADINGS[check.check],
        passed=check.passed,
        figure=figure,
        limit="exact" if check.tolerance is None else f"{check.tolerance:g}",
        measured=measured,
        where=check.note or check.where,
    )


def culprits(examined: "Examined") -> list[Culprit]:
    """Each run that failed: what parts first, in the order in which a run computes it."""
    made = []
    for found in examined.found:
        failed = [check for check in checks_of(found, examined) if not check.passed]
        if failed:
            first = failed[0]
            what = first.note or f"{HEADINGS[first.check]}: {first.distance:.1e} at {first.where}"
            if first.parted:
                what += f"; first of {len(first.parted)} arrays that part: {first.parted[0]}"
            who = f"{found.framework} on {found.devices}, {title(examined.comparison)}"
            made.append(Culprit(who, what, anchor(found, examined)))
    return made
