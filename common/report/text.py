"""Verdicts in words, tables and conclusions: on the terminal, and as a page."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import printable
from common.chapters.spec import CHAPTERS, spec
from common.compare.findings import HEADINGS, Check, Comparison, Verdict, nearest_to_failing
from common.diagnose.suspects import Suspect
from common.pairs.arrays import PairVerdict, heading
from common.terminal.tables import Cell, listed, table

EVERY: Final = "every framework computed the same"


def say(line: str, style: str = "") -> None:
    Console(highlight=False).print(Text(printable(line), style=style), soft_wrap=True)


def print_verdict(
    verdict: Verdict, accused: Sequence[Suspect] = (), *, brief: bool = False
) -> None:
    """Prints a table for each comparison, what fits, what failed, and the conclusion.

    If `brief`, a comparison without a failed check is one line.
    """
    console = Console(highlight=False)
    for suite in verdict.comparisons:
        if brief and all(check.passed for check in suite.checks):
            say(f"{suite.title}: all {len(suite.checks)} checks passed")
            continue
        headings = ["check", *columns(suite), "limit"]
        console.print(table(headings, rows(suite), title=suite.title, caption=subtitle(suite)))
        console.print()
    for suspect in accused:
        for line in suspect.evidence:
            say(f"{suspect.framework} {suspect.chapter}, {line}", "red")
    for check in verdict.failures:
        say(describe(check), "red")
    partly = [suite for suite in verdict.comparisons if suite.lacking]
    if len(partly) < len(verdict.comparisons):
        right = [suite for suite in partly if all(check.passed for check in suite.checks)]
        for line in agreements(right):
            say(line)
    if verdict.not_run:
        say(not_run(verdict), "yellow")
    say(conclusion(verdict), "green bold" if verdict.passed else "red bold")


def print_pair(verdict: PairVerdict, title: str) -> int:
    """Prints the verdict. Returns 0 (the same), 1 (they diverge) or 2 (not comparable)."""
    for line in (title, *verdict.notes):
        say(line)
    checks = verdict.checks
    if checks:
        if not checks[0].check:  # of weights, the farthest come first
            checks = sorted(checks, key=lambda x: (x.distance is not None, -(x.distance or 0)))
        headings = ["compared", "distance", "limit", "farthest at"]
        Console(highlight=False).print(table(headings, map(pair_row, checks), left=(0, 3)))
    for check in checks:
        if check.note:
            say(f"{heading(check)}: {check.note}", "" if check.passed else "red")
    say(verdict.conclusion, "green bold" if verdict.passed else "red bold")
    return 2 if verdict.differences else int(not verdict.passed)


def pair_row(check: Check) -> list[str | Cell]:
    distance = "none" if check.distance is None else f"{check.distance:.1e}"
    limit = f"≤ {check.tolerance:.1e}" if check.tolerance else "exact"
    if check.tolerance is None:
        limit = "none"
    figure = f"{distance} {'✓' if check.passed else '✗'}", check.passed
    return [printable(heading(check)), figure, limit, printable(check.where)]


def page(verdict: Verdict, accused: Sequence[Suspect]) -> str:
    """The page as HTML, which fetches nothing; whatever comes from a file is escaped."""
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
    words = (columns, conclusion, describe, not_run, rows, subtitle)
    environment.globals |= {function.__name__: function for function in words}
    innocent = {x.framework for x in verdict.checks} - {x.framework for x in accused}
    return environment.get_template("parity.html").render(
        verdict=verdict,
        suspects=accused,
        innocent=[name for name in FRAMEWORKS if name in innocent],
        nets={name: spec(name).heading for name in CHAPTERS},
    )


def rows(comparison: Comparison) -> list[list[str | Cell]]:
    """A row for each check: its heading, the worst figures, and the limit."""
    table_rows: list[list[str | Cell]] = []
    for name, words in HEADINGS.items():
        checks = [check for check in comparison.checks if check.check == name]
        if checks:
            limits = [check.tolerance for check in checks if check.tolerance is not None]
            sign = "≥" if name == "accuracy" else "≤"
            limit = f"{sign} {limits[0]:g}" if limits else "exact"
            cells = [_cell(comparison, checks, framework) for framework in columns(comparison)]
            table_rows.append([words, *cells, limit])
    return table_rows


def _cell(comparison: Comparison, checks: Sequence[Check], framework: str) -> Cell:
    """The worst figure of a framework's runs, and whether all passed."""
    if framework in comparison.lacking:
        return "none", None
    checks = [check for check in checks if check.framework == framework]
    if not checks:
        return "", True
    worst = nearest_to_failing(checks)
    passed = all(check.passed for check in checks)
    mark = "✓" if passed else "✗"
    if worst.distance is None:
        return mark if worst.tolerance is None else f"none {mark}", passed
    digits = ".3f" if worst.check in ("accuracy", "spread") else ".1e"
    return f"{worst.distance:{digits}} {mark}", passed


def columns(comparison: Comparison) -> list[str]:
    """The frameworks that were expected, and those that have no such runs."""
    names = {check.framework for check in comparison.checks} | comparison.lacking.keys()
    return sorted(names, key=FRAMEWORKS.index)


def subtitle(comparison: Comparison) -> str:
    """The setting, and what the runs are compared with."""
    config = comparison.config
    if config is None:
        return "no records"
    length = f"{config.epochs} epochs" if config.steps is None else f"{config.steps} steps"
    setting = f"{length}, batch {config.batch_size}, {config.rates()}, {config.dtype}"
    data = f"{config.train_examples:,} {config.dataset} images"
    notes = [f"{setting}, {data}", f"against {comparison.compared_with}"]
    notes += [f"no runs of {name}: {why}" for name, why in comparison.lacking.items()]
    return "; ".join([*notes, *comparison.notes, *uncompared(comparison.checks)])


def describe(check: Check) -> str:
    who = f"{check.framework} {check.chapter} on {check.devices}, {check.suite}"
    return f"FAILED {check.check}: {who}: {check.why}"


def not_run(verdict: Verdict) -> str:
    """What was not run, and the command that runs it."""
    suites = f"more devices, and {len(verdict.not_run)} of the suites"
    return f"not run: {suites} (parity.json names them); `nox -s grid` runs all"


def conclusion(verdict: Verdict) -> str:
    """The verdict in a line: no more than was compared."""
    if failed := len(verdict.failures):
        return f"{failed} of {len(verdict.checks)} checks FAILED"
    whole = [suite for suite in verdict.comparisons if not suite.lacking] or verdict.comparisons
    said = [*agreements(whole), *uncompared(verdict.checks)]
    if verdict.ignored:
        said.append(f"not compared, as no suite has them: {', '.join(verdict.ignored)}")
    if len(whole) < len(verdict.comparisons) and said[0] == EVERY:
        said[0] += ", in all suites that it supports"
    return f"all {len(verdict.checks)} checks passed: {'; '.join(said)}"


def agreements(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Which frameworks agree, for all suites that the same ones have run."""
    groups: dict[tuple[bool, tuple[str, ...], tuple[str, ...]], list[Comparison]] = {}
    for suite in comparisons:
        on_gpus = suite.config is not None and suite.config.device_kind == "gpu"
        compared = dict.fromkeys(check.framework for check in suite.checks)
        key = on_gpus, tuple(suite.lacking), tuple(compared)
        groups.setdefault(key, []).append(suite)
    for (on_gpus, lacking, names), group in groups.items():
        said = EVERY if len(names) == len(FRAMEWORKS) else f"{listed(names)} agree"
        if len(names) == 1:
            said = _alone(names[0], group)
        if lacking:
            suites = ", ".join(suite.suite for suite in group)
            unable = [name for name in FRAMEWORKS if name in lacking]
            said = f"{suites}: {said} (not supported by {listed(unable)})"
        elif others := [name for name in FRAMEWORKS if name not in names]:
            said = f"{said}; not compared: {', '.join(others)}"
        yield f"{'on GPUs, ' if on_gpus else ''}{said}"


def _alone(name: str, comparisons: Sequence[Comparison]) -> str:
    """What one framework computed the same as."""
    names_of_checks = [{check.check for check in suite.checks} for suite in comparisons]
    on_others = all(checks & {"devices", "gpus"} for checks in names_of_checks)
    numpys = "" if on_others else "NumPy in single steps, and, where they share an answer, "
    return f"{name} computed the same as {numpys}on other devices"


def uncompared(checks: Sequence[Check]) -> list[str]:
    """How many steps could not be compared; nothing if all were."""
    lost = sum(check.hidden for check in checks)
    steps = sum(check.steps for check in checks)
    said = f"how {lost} of {steps} steps moved weights was not compared: rounding hides it"
    return [said] if lost else []
