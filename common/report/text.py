"""The verdict in words: on the terminal, for the page."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.backends.frameworks import FRAMEWORKS
from common.compare.findings import HEADINGS, Check
from common.compare.suite import Comparison, Verdict, failures, title
from common.terminal import tables

Cell = tuple[str, bool | None]
"""A figure, and whether it has passed; None: there is no run."""

Row = tuple[str, list[Cell], str]
"""Of a check: its heading, each framework's worst figure, and the limit."""


def print_verdict(verdict: Verdict) -> None:
    """Prints a table for each comparison, what failed, and the conclusion."""
    console = Console(highlight=False)
    for comparison in verdict.comparisons:
        console.print(_table(comparison))
        console.print()
    for check in failures(verdict):
        console.print(Text(describe(check), style="red"), soft_wrap=True)
    if verdict.not_run:
        console.print(Text(left_to_grid(verdict), style="yellow"), soft_wrap=True)
    style = "green bold" if verdict.passed else "red bold"
    console.print(Text(conclusion(verdict), style=style), soft_wrap=True)


def _table(comparison: Comparison) -> Table:
    headings = ["check", *columns(comparison), "limit"]
    made = tables.table(headings, title=title(comparison), caption=subtitle(comparison))
    for heading, cells, limit in rows(comparison):
        made.add_row(heading, *(tables.judged(*cell) for cell in cells), limit)
    return made


def rows(comparison: Comparison) -> list[Row]:
    """The rows of a comparison's table, one for each check that was made."""
    made, names = [], columns(comparison)
    for name, heading in HEADINGS.items():
        checks = [each for each in comparison.checks if each.check == name]
        if checks:
            limits = [f"{each.tolerance:g}" for each in checks if each.tolerance is not None]
            bound = "≥" if name == "accuracy" else "≤"
            cells: list[Cell] = [
                _cell([each for each in checks if each.framework == who])
                if who not in comparison.lacking
                else ("none", None)
                for who in names
            ]
            made.append((heading, cells, f"{bound} {limits[0]}" if limits else "exact"))
    return made


def frameworks(comparison: Comparison) -> list[str]:
    """The frameworks that were expected, in order."""
    return list(dict.fromkeys(check.framework for check in comparison.checks))


def columns(comparison: Comparison) -> list[str]:
    """These, and those that have no such runs, in order."""
    return sorted({*frameworks(comparison), *comparison.lacking}, key=FRAMEWORKS.index)


def subtitle(comparison: Comparison) -> str:
    """The setting, and what the runs are compared with."""
    config, data = comparison.config, comparison.data
    if config is None or data is None:
        return "no records"
    length = f"{config.epochs} epochs" if config.steps is None else f"{config.steps} steps"
    without = [f"no runs of {name}: {why}" for name, why in comparison.lacking.items()]
    notes = "".join(f"; {x}" for x in (*without, *comparison.notes, *uncompared([comparison])))
    return (
        f"{length}, batch {config.batch_size}, {config.rates()}, {config.dtype}, "
        f"{data.train_examples:,} {data.name} images; against {comparison.compared_with}{notes}"
    )


def describe(check: Check) -> str:
    """One failed check, in a line: who, what, where and by how much."""
    who = f"{check.framework} {check.chapter} on {check.devices}, {check.suite}"
    if check.note:
        return f"FAILED {check.check}: {who}: {check.note}"
    if check.distance is None:
        return f"FAILED {check.check}: {who}: {check.place} cannot be compared"
    return (
        f"FAILED {check.check}: {who}: {check.distance:.1e} at {check.place}, "
        f"at most {check.tolerance:.1e} is allowed"
    )


def conclusion(verdict: Verdict) -> str:
    """The verdict in a line."""
    checks = [check for comparison in verdict.comparisons for check in comparison.checks]
    failed = len(failures(verdict))
    if failed:
        return f"{failed} of {len(checks)} checks FAILED"
    told = [agreement(verdict), *uncompared(verdict.comparisons)]
    return f"all {len(checks)} checks passed: {'; '.join(told)}"


def left_to_grid(verdict: Verdict) -> str:
    """The runs that the verdict says nothing of, in a line."""
    listed = ", ".join(verdict.not_run)
    return f"not run (`nox -s grid` runs them): 3 or more devices, and {listed}"


def agreement(verdict: Verdict) -> str:
    """Who computed the same, in words: no more than was compared."""
    groups: dict[tuple[bool, bool, tuple[str, ...]], list[Comparison]] = {}
    for each in verdict.comparisons:
        on_gpus = each.config is not None and each.config.device_kind == "gpu"
        key = on_gpus, bool(each.lacking), tuple(frameworks(each))
        groups.setdefault(key, []).append(each)
    said = []
    for (on_gpus, some, names), those in groups.items():
        others = [name for name in FRAMEWORKS if name not in names]
        suites = f"{', '.join(each.suite for each in those)}: " if some else ""
        if some:
            but = f" (not supported by {listed([x for x in others if x in those[0].lacking])})"
        else:
            but = f"; not compared: {', '.join(others)}" if others else ""
        said.append(f"{'on GPUs, ' if on_gpus else ''}{suites}{_agree(names, those)}{but}")
    return "; ".join(said)


def _agree(names: Sequence[str], comparisons: Sequence[Comparison]) -> str:
    """That these frameworks agree; one alone, with what it was compared with."""
    if len(names) == len(FRAMEWORKS):
        return "every framework computed the same"
    if len(names) > 1:
        return f"{listed(names)} agree"
    found = [{check.check for check in comparison.checks} for comparison in comparisons]
    on_others = all(each & {"devices", "hosts", "gpus"} for each in found)
    numpys = "" if on_others else "NumPy in single steps, and, where they share an answer, "
    return f"{''.join(names)} computed the same as {numpys}on other devices"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _cell(checks: Sequence[Check]) -> tuple[str, bool]:
    """The worst figure of one check over one framework's device counts, and whether all passed."""
    if not checks:
        return "", True
    figures = [check.distance for check in checks if check.distance is not None]
    if not all(check.comparable for check in checks):
        figure = "none"
    elif checks[0].check in ("accuracy", "spread"):
        figure = f"{min(figures) if checks[0].check == 'accuracy' else max(figures):.3f}"
    else:
        figure = f"{max(figures):.1e}" if figures else ""
    passed = all(check.passed for check in checks)
    return f"{figure} {'✓' if passed else '✗'}".strip(), passed


def uncompared(comparisons: Sequence[Comparison]) -> list[str]:
    """Of how many steps it is not known how they moved weights; nothing if of none."""
    checks = [check for comparison in comparisons for check in comparison.checks]
    lost, steps = sum(each.hidden for each in checks), sum(each.steps for each in checks)
    said = f"how {lost} of {steps} steps moved weights was not compared: rounding hides it"
    return [said] if lost else []
