"""The verdict in words: its tables and its conclusion."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from common.backends.frameworks import FRAMEWORKS
from common.compare.findings import HEADINGS, Check, Comparison, Verdict, nearest_to_failing
from common.terminal.tables import Cell, table

EVERY: Final = "every framework computed the same"
"""What is said of suites that all frameworks have run."""


def print_verdict(verdict: Verdict) -> None:
    """Prints a table for each comparison, what failed, and the conclusion."""
    console = Console(highlight=False)
    for each in verdict.comparisons:
        headings = ["check", *columns(each), "limit"]
        console.print(table(headings, rows(each), title=each.title, caption=subtitle(each)))
        console.print()
    for check in verdict.failures:
        console.print(Text(describe(check), style="red"), soft_wrap=True)
    _, partly = by_support(verdict)
    for line in agreements(partly):
        console.print(Text(line), soft_wrap=True)
    if verdict.not_run:
        console.print(Text(not_run(verdict), style="yellow"), soft_wrap=True)
    style = "green bold" if verdict.passed else "red bold"
    console.print(Text(conclusion(verdict), style=style), soft_wrap=True)


def rows(comparison: Comparison) -> list[list[str | Cell]]:
    """A row for each check: its heading, the worst figures, and the limit."""
    found: list[list[str | Cell]] = []
    for name, heading in HEADINGS.items():
        checks = [each for each in comparison.checks if each.check == name]
        if checks:
            limits = [f"{each.tolerance:g}" for each in checks if each.tolerance is not None]
            limit = f"{'≥' if name == 'accuracy' else '≤'} {limits[0]}" if limits else "exact"
            cells = [
                ("none", None)
                if who in comparison.lacking
                else _cell([each for each in checks if each.framework == who])
                for who in columns(comparison)
            ]
            found.append([heading, *cells, limit])
    return found


def _cell(checks: Sequence[Check]) -> Cell:
    """The worst figure of a check of one framework's runs, and whether all passed."""
    if not checks:
        return "", True
    worst, passed = nearest_to_failing(checks), all(check.passed for check in checks)
    figure = "" if worst.comparable else "none"
    if worst.distance is not None:
        digits = ".3f" if worst.check in ("accuracy", "spread") else ".1e"
        figure = f"{worst.distance:{digits}}"
    return f"{figure} {'✓' if passed else '✗'}".strip(), passed


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
    notes = "".join(f"; {x}" for x in (*without, *comparison.notes, *uncompared([comparison])))
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
    whole = [each for each in verdict.comparisons if not each.lacking]
    partly = [each for each in verdict.comparisons if each.lacking]
    return (whole, partly) if whole else (partly, [])


def conclusion(verdict: Verdict) -> str:
    """The verdict in a line: no more than was compared."""
    if failed := len(verdict.failures):
        return f"{failed} of {len(verdict.checks)} checks FAILED"
    whole, partly = by_support(verdict)
    said = [*agreements(whole), *uncompared(verdict.comparisons)]
    if partly and said[0] == EVERY:
        said[0] += ", in all suites that it supports"
    return f"all {len(verdict.checks)} checks passed: {'; '.join(said)}"


def agreements(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Which frameworks agree, for all suites that the same ones have run."""
    groups: dict[tuple[bool, tuple[str, ...], tuple[str, ...]], list[Comparison]] = {}
    for each in comparisons:
        on_gpus = each.config is not None and each.config.device_kind == "gpu"
        key = on_gpus, tuple(each.lacking), tuple(frameworks(each))
        groups.setdefault(key, []).append(each)
    for (on_gpus, lacking, names), those in groups.items():
        said = _agree(names, those)
        if lacking:
            suites = ", ".join(each.suite for each in those)
            unable = [name for name in FRAMEWORKS if name in lacking]
            said = f"{suites}: {said} (not supported by {listed(unable)})"
        elif others := [name for name in FRAMEWORKS if name not in names]:
            said = f"{said}; not compared: {', '.join(others)}"
        yield f"{'on GPUs, ' if on_gpus else ''}{said}"


def _agree(names: Sequence[str], comparisons: Sequence[Comparison]) -> str:
    """That these frameworks agree; one alone, with what it was compared with."""
    if len(names) == len(FRAMEWORKS):
        return EVERY
    if len(names) > 1:
        return f"{listed(names)} agree"
    found = [{check.check for check in comparison.checks} for comparison in comparisons]
    on_others = all(each & {"devices", "hosts", "gpus"} for each in found)
    numpys = "" if on_others else "NumPy in single steps, and, where they share an answer, "
    return f"{''.join(names)} computed the same as {numpys}on other devices"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def uncompared(comparisons: Sequence[Comparison]) -> list[str]:
    """How many steps could not be compared; nothing if all were."""
    checks = [check for comparison in comparisons for check in comparison.checks]
    lost, steps = sum(each.hidden for each in checks), sum(each.steps for each in checks)
    said = f"how {lost} of {steps} steps moved weights was not compared: rounding hides it"
    return [said] if lost else []
