"""Tells how much of an accuracy is chance: its spread over seeds, and between frameworks.

python -m common.seeds results/seeds

All frameworks start from the same weights and see the same minibatches at the same seed, so their
accuracies are compared seed by seed. `nox -s seeds` makes the runs.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.base.files import write_text
from common.chapters.chapters import CHAPTERS
from common.seeds.spread import FILE, Spread, spread_in
from common.terminal.command import Parser, status
from common.terminal.values import DEVICES, REPEATS, count

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

Rows = list[list[str]]


def framework_rows(spread: Spread) -> Rows:
    """A row for each framework: its accuracies over the seeds; the first are the headings."""
    rows = [["framework", "mean", "deviation", "least", "most"]]
    for each in spread.frameworks:
        figures = (each.mean, each.deviation, each.least, each.most)
        rows.append([each.framework, *(f"{figure:.4f}" for figure in figures)])
    return rows


def difference_rows(spread: Spread) -> Rows:
    """A row for each two frameworks: how they differ at the same seed; first the headings."""
    rows = [["at the same seed", "mean", "deviation", "standard error"]]
    for each in spread.differences:
        mean = round(each.mean, 4) + 0.0  # what is 0 to this place has no sign
        figures = f"{mean:+.4f}", f"{each.deviation:.4f}", f"{each.error:.4f}"
        rows.append([f"{each.first} - {each.second}", *figures])
    return rows


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
    from common.terminal import tables

    lines = [title(spread), ""]
    for rows in (framework_rows(spread), difference_rows(spread)):
        lines += [*tables.markdown(rows[0], rows[1:]), ""]
    return "\n".join([*lines, *(f"- {finding}" for finding in findings(spread)), ""])


def print_spread(spread: Spread) -> None:
    """Prints the tables and what they say."""
    from rich.console import Console

    from common.terminal import tables

    console = Console(highlight=False, markup=False)
    console.print(title(spread))
    for headings, *rows in (framework_rows(spread), difference_rows(spread)):
        table = tables.table(headings)
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for finding in findings(spread):
        console.print(finding)


def parser() -> Parser:
    """The command line."""
    made = Parser(
        prog="python -m common.seeds",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("folder", type=Path, metavar="DIR", help="has a folder for each seed: 0, 1, 2, ...")
    add("--chapter", choices=CHAPTERS, default=CHAPTERS[0], help="(%(default)s)")
    add("--frameworks", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS)
    add(
        "--seeds",
        type=count(REPEATS),
        metavar="N",
        help="expect the seeds 0 to N - 1 (those there are)",
    )
    add("--devices", type=count(DEVICES), default=1, metavar="N", help="of each run (%(default)s)")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the spread, and writes it as JSON and Markdown. Returns 0 or 2."""
    flags = parser().parse_args(argv)
    try:
        spread = spread_in(
            flags.folder,
            chapter=flags.chapter,
            frameworks=list(dict.fromkeys(flags.frameworks)),
            seeds=range(flags.seeds or 0),
            devices=flags.devices,
        )
        write_text(flags.folder / FILE, spread.model_dump_json(indent=2) + "\n")
        write_text((flags.folder / FILE).with_suffix(".md"), markdown(spread))
    except (RequestError, OSError) as error:
        print(f"python -m common.seeds: error: {error}", file=sys.stderr)
        return 2
    print_spread(spread)
    return 0


if __name__ == "__main__":
    raise SystemExit(status("python -m common.seeds", main))
