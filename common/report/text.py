"""The verdict in words: its tables and its conclusion."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from common.backends.frameworks import FRAMEWORKS
from common.compare.findings import HEADINGS, Check, Comparison, Verdict, nearest_to_failing
from common.terminal.tables import Cell, table
from common.terminal.text import listed

EVERY: Final = "every framework computed the same"
"""What is said of suites that all frameworks have run."""


def print_verdict(verdict: Verdict) -> None:
    """Prints a table for each comparison, what failed, and the conclusion."""
    console = Console(highlight=False)
    for suite in verdict.comparisons:
        headings = ["check", *columns(suite), "limit"]
        console.print(table(headings, rows(suite), title=suite.title, caption=subtitle(suite)))
        console.print()

    def say(line: str, style: str = "") -> None:
        console.print(Text(line, style=style), soft_wrap=True)

    for check in verdict.failures:
        say(describe(check), "red")
    for line in agreements(by_support(verdict)[1]):
        say(line)
    if verdict.not_run:
        say(not_run(verdict), "yellow")
    say(conclusion(verdict), "green bold" if verdict.passed else "red bold")


def rows(comparison: Comparison) -> list[list[str | Cell]]:
    """A row for each check: its heading, the worst figures, and the limit."""
    table_rows: list[list[str | Cell]] = []
    for name, heading in HEADINGS.items():
        checks = [check for check in comparison.checks if check.check == name]
        if checks:
            limits = [f"{x.tolerance:g}" for x in checks if x.tolerance is not None]
            limit = f"{'≥' if name == 'accuracy' else '≤'} {limits[0]}" if limits else "exact"
            cells: list[Cell] = [
                ("none", None)
                if who in comparison.lacking
                else _cell([check for check in checks if check.framework == who])
                for who in columns(comparison)
            ]
            table_rows.append([heading, *cells, limit])
    return table_rows


def _cell(checks: Sequence[Check]) -> Cell:
    """The worst figure of a check of one framework's runs, and whether all passed."""
    if not checks:
        return "", True
    worst, passed = nearest_to_failing(checks), all(check.passed for check in checks)
    if worst.distance is None:
        figure = "" if worst.tolerance is None else "none "
    else:
        figure = f"{worst.distance:{'.3f' if worst.check in ('accuracy', 'spread') else '.1e'}} "
    return f"{figure}{'✓' if passed else '✗'}", passed


def frameworks(comparison: Comparison) -> list[str]:
    """The frameworks that were expected, in order."""
    return list(dict.fromkeys(check.framework for check in comparison.checks))


def columns(comparison: Comparison) -> list[str]:
    """These, and those that have no such runs, in order."""
    return sorted({*frameworks(comparison), *comparison.lacking}, key=FRAMEWORKS.index)


def subtitle(comparison: Comparison) -> str:
    """The setting, and what the runs are compared with."""
    config = comparison.config
    if config is None:
        return "no records"
    length = f"{config.epochs} epochs" if config.steps is None else f"{config.steps} steps"
    without = [f"no runs of {name}: {why}" for name, why in comparison.lacking.items()]
    notes = "".join(f"; {x}" for x in (*without, *comparison.notes, *uncompared(comparison.checks)))
    setting = f"{length}, batch {config.batch_size}, {config.rates()}, {config.dtype}"
    data = f"{config.train_examples:,} {config.dataset} images"
    return f"{setting}, {data}; against {comparison.compared_with}{notes}"


def describe(check: Check) -> str:
    """One failed check, in a line: who, what, where and by how much."""
    who = f"{check.framework} {check.chapter} on {check.devices}, {check.suite}"
    return f"FAILED {check.check}: {who}: {check.why}"


def not_run(verdict: Verdict) -> str:
    """The part of the plan that was not run, and the command that runs it."""
    suites = f"more devices, and {len(verdict.not_run)} of the suites"
    return f"not run: {suites} (parity.json names them); `nox -s grid` runs all"


def by_support(verdict: Verdict) -> tuple[list[Comparison], list[Comparison]]:
    """The suites for the last line, and those printed above it: not every framework has them."""
    whole = [suite for suite in verdict.comparisons if not suite.lacking]
    partly = [suite for suite in verdict.comparisons if suite.lacking]
    return (whole, partly) if whole else (partly, [])


def conclusion(verdict: Verdict) -> str:
    """The verdict in a line: no more than was compared."""
    if failed := len(verdict.failures):
        return f"{failed} of {len(verdict.checks)} checks FAILED"
    whole, partly = by_support(verdict)
    said = [*agreements(whole), *uncompared(verdict.checks)]
    if verdict.ignored:
        said.append(f"not compared, as no suite has them: {', '.join(verdict.ignored)}")
    if partly and said[0] == EVERY:
        said[0] += ", in all suites that it supports"
    return f"all {len(verdict.checks)} checks passed: {'; '.join(said)}"


def agreements(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Which frameworks agree, for all suites that the same ones have run."""
    groups: dict[tuple[bool, tuple[str, ...], tuple[str, ...]], list[Comparison]] = {}
    for suite in comparisons:
        on_gpus = suite.config is not None and suite.config.device_kind == "gpu"
        key = on_gpus, tuple(suite.lacking), tuple(frameworks(suite))
        groups.setdefault(key, []).append(suite)
    for (on_gpus, lacking, names), group in groups.items():
        said = _agree(names, group)
        if lacking:
            suites = ", ".join(suite.suite for suite in group)
            unable = [name for name in FRAMEWORKS if name in lacking]
            said = f"{suites}: {said} (not supported by {listed(unable)})"
        elif others := [name for name in FRAMEWORKS if name not in names]:
            said = f"{said}; not compared: {', '.join(others)}"
        yield f"{'on GPUs, ' if on_gpus else ''}{said}"


def _agree(names: Sequence[str], comparisons: Sequence[Comparison]) -> str:
    """What frameworks computed the same as, and no more than was compared."""
    if len(names) == len(FRAMEWORKS):
        return EVERY
    if len(names) > 1:
        return f"{listed(names)} agree"
    names_of_checks = [{check.check for check in suite.checks} for suite in comparisons]
    on_others = all(checks & {"devices", "hosts", "gpus"} for checks in names_of_checks)
    numpys = "" if on_others else "NumPy in single steps, and, where they share an answer, "
    return f"{''.join(names)} computed the same as {numpys}on other devices"


def uncompared(checks: Sequence[Check]) -> list[str]:
    """How many steps could not be compared; nothing if all were."""
    lost, steps = sum(check.hidden for check in checks), sum(check.steps for check in checks)
    said = f"how {lost} of {steps} steps moved weights was not compared: rounding hides it"
    return [said] if lost else []
