"""The verdict, and the tables of layers, in words: on the terminal, for the page."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.backends.frameworks import FRAMEWORKS
from common.chapters.suites import ON_GPUS
from common.compare.findings import HEADINGS, Check, Hidden
from common.compare.layerwise import Layer, LayerTable
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
    share = max((100 * each.hidden // each.entries for each in _hidden([comparison])), default=0)
    most = [f"rounding of the weights hides up to {share} % of the entries of a step"]
    hidden = [*(most if share else []), *uncompared([comparison])]
    told = "".join(f"; {each}" for each in (*without, *comparison.notes, *hidden))
    return (
        f"{length}, batch {config.batch_size}, {config.rates()}, {config.dtype}, "
        f"{data.train_examples:,} {data.name} images; against {comparison.compared_with}{told}"
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
    told = []
    for where, on_gpus in (("", False), ("on GPUs, ", True)):
        found = [each for each in verdict.comparisons if each.suite.startswith(ON_GPUS) == on_gpus]
        if for_all := [each for each in found if not each.lacking]:
            told.append(where + _agreement(for_all))
        for_some: dict[tuple[str, ...], list[Comparison]] = {}
        for each in found:
            if each.lacking:
                for_some.setdefault(tuple(frameworks(each)), []).append(each)
        if for_some:
            each_set = "; ".join(_of_some(*names, of=those) for names, those in for_some.items())
            told.append(f"{where}of what others lack, {each_set}")
    return "; ".join(told)


def _agreement(comparisons: Sequence[Comparison]) -> str:
    names = [set(frameworks(comparison)) for comparison in comparisons]
    alone = {name for each in names if len(each) == 1 for name in each}
    if alone:
        return (
            f"{_of_some(', '.join(sorted(alone)), of=comparisons)}; no other framework was compared"
        )
    if all(each.issuperset(FRAMEWORKS) for each in names):
        return "every framework computed the same"
    compared = [name for name in FRAMEWORKS if all(name in each for each in names)]
    others = [name for name in FRAMEWORKS if name not in compared]
    return f"{_of_some(*compared, of=comparisons)}; not compared: {', '.join(others)}"


def _of_some(*names: str, of: Sequence[Comparison]) -> str:
    """That these frameworks computed the same; one alone, the same as what it was held to."""
    if len(names) > 1:
        return f"{', '.join(names[:-1])} and {names[-1]} computed the same"
    found = [{check.check for check in comparison.checks} for comparison in of]
    on_others = all(each & {"devices", "hosts", "gpus"} for each in found)
    numpys = "" if on_others else "NumPy in single steps, and, where they share an answer, "
    return f"{''.join(names)} computed the same as {numpys}on other devices"


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
    steps = _hidden(comparisons)
    without = sum(not each.compared for each in steps)
    told = f"how {without} of {len(steps)} steps moved weights was not compared: rounding hides it"
    return [told] if without else []


def _hidden(comparisons: Sequence[Comparison]) -> list[Hidden]:
    checks = [check for comparison in comparisons for check in comparison.checks]
    return [each for check in checks for each in check.hidden]


def report_layers(found: Sequence[LayerTable]) -> bool:
    """Prints the tables, and where runs diverge; returns whether none does."""
    console = Console(highlight=False)
    for table in found:
        console.print(_layers_printed(table))
        for divergence in table.divergences():
            console.print(Text(divergence.text, style="red bold"), soft_wrap=True)
    diverged = any(table.divergences() for table in found)
    if not diverged:
        agreed = f"no layer diverges: {_compared_layers(found)}"
        console.print(Text(agreed, "green bold"), soft_wrap=True)
    return not diverged


def _compared_layers(found: Sequence[LayerTable]) -> str:
    """Who made the same, in words, and when: no more than was compared."""
    names = dict.fromkeys(name for table in found for name in table.frameworks())
    after = all(any(layer.when == "after" for layer in table.layers) for table in found)
    times = "before and after training" if after else "before training"
    if len(names) == 1:
        return f"{next(iter(names))} makes the same of the images on all devices {times}"
    return f"{' and '.join(names)} make the same of the images {times}"


def layer_rows(table: LayerTable) -> list[tuple[Layer, list[tuple[str, bool]]]]:
    """Each layer, and of each framework the figure of the run that is farthest off."""
    names = [run.record.framework for run in table.runs]
    made = []
    for layer in table.layers:
        cells = dict.fromkeys(names, ("", True))
        measured = zip(layer.distances, layer.limits, names, strict=True)
        for far, limit, name in sorted(measured):
            figure = f"{far:.1e}" if math.isfinite(far) else "none"
            cells[name] = f"{figure} {'✓' if far <= limit else '✗'}", far <= limit
        made.append((layer, list(cells.values())))
    return made


def _layers_printed(table: LayerTable) -> Table:
    made = tables.table(["layer", *table.frameworks()], title=table.title)
    before = ""
    for layer, cells in layer_rows(table):
        if layer.when != before:
            made.add_section()
        before = layer.when
        texts = (tables.judged(*cell) for cell in cells)
        made.add_row(f"{layer.name}, {layer.when}", *texts)
    return made
