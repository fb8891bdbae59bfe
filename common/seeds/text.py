"""The spread of accuracies in words and tables."""

from collections.abc import Iterator
from typing import Final

from common.seeds.spread import Spread
from common.terminal import tables

NULL: Final = (
    "null hypothesis: which framework ran makes no difference: at each seed, their accuracies "
    "are exchangeable"
)

STATISTIC: Final = (
    "statistic: the variance of the frameworks' mean accuracies; the frameworks' names are "
    "permuted within each seed"
)

READING: Final = (
    "A small p speaks against the null hypothesis; a large one does not prove it: it says that "
    "these runs cannot tell the difference from chance."
)

Cells = tuple[list[str], list[list[str]]]
"""The headings of a table, and its rows."""


def framework_rows(spread: Spread) -> Cells:
    """A row for each framework: its accuracies over the seeds."""
    rows = []
    for each in spread.frameworks:
        figures = (each.mean, each.deviation, each.least, each.most)
        rows.append([each.framework, *(f"{figure:.4f}" for figure in figures)])
    return ["framework", "mean", "deviation", "least", "most"], rows


def difference_rows(spread: Spread) -> Cells:
    """A row for each two frameworks: how they differ at the same seed."""
    rows = []
    for each in spread.differences:
        mean = round(each.mean, 4) + 0.0  # what is 0 to this place has no sign
        figures = f"{mean:+.4f}", f"{each.deviation:.4f}", f"{each.error:.4f}"
        rows.append([f"{each.first} - {each.second}", *figures])
    return ["at the same seed", "mean", "deviation", "standard error"], rows


def title(spread: Spread) -> str:
    """The setting in a line."""
    seeds = ", ".join(map(str, spread.seeds))
    return (
        f"{spread.chapter}, preset {spread.preset}, {spread.train_examples:,} {spread.data} "
        f"images, devices: {spread.devices}; seeds {seeds}; accuracy on "
        f"{spread.test_examples:,} images"
    )


def findings(spread: Spread) -> Iterator[str]:
    """What the figures say, line by line; the last is the conclusion."""
    test = spread.test
    yield (
        f"standard deviation of one framework over the seeds: {spread.over_seeds:.4f}; "
        f"of the frameworks at one seed: {spread.over_frameworks:.4f}"
    )
    yield NULL
    yield STATISTIC
    ways = f"{'all' if test.exact else 'drawn'} {test.relabellings:,} permutations"
    yield (
        f"p = {test.p_value:.3g} ({ways}; with so few seeds it cannot be below {test.smallest:.2g})"
        if test.exact
        else f"p = {test.p_value:.3g} ({ways})"
    )
    yield (
        "If the null hypothesis held, the means would lie at least as far apart as these in "
        f"{test.p_value:.1%} of such experiments. {READING}"
    )


def markdown(spread: Spread) -> str:
    """All of it as Markdown, to paste."""
    lines = [title(spread), ""]
    for cells in (framework_rows(spread), difference_rows(spread)):
        lines += [*tables.markdown(*cells), ""]
    return "\n".join([*lines, *(f"- {finding}" for finding in findings(spread)), ""])


def print_spread(spread: Spread) -> None:
    """Prints the tables and what they say."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.print(title(spread))
    for headings, rows in (framework_rows(spread), difference_rows(spread)):
        table = tables.table(headings)
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for finding in findings(spread):
        console.print(finding)
