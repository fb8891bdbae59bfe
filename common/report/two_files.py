"""Two files compared, for people: a table on the terminal, and the conclusion below it."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.base.errors import RequestError
from common.compare.findings import HEADINGS
from common.models.weights_file import bfloat16_note, load_arrays
from common.pairs.arrays import ArrayPair, PairVerdict, compare_arrays
from common.pairs.runs import compare_runs, read_run
from common.terminal import tables
from common.terminal.text import printable


def compare_files(first: Path, second: Path, tolerance: float | None) -> PairVerdict:
    """The verdict on two records, or two files of weights, the first against the second.

    Raises RequestError or RunError if they are neither, or cannot be read.
    """
    kinds = {path.suffix.lower() for path in (first, second)}
    if kinds == {".json"}:
        return compare_runs(read_run(first), read_run(second), tolerance)
    if kinds == {".safetensors"}:
        verdict = compare_arrays(load_arrays(first), load_arrays(second), tolerance)
        notes = [*filter(None, map(bfloat16_note, (first, second)))]
        return verdict.model_copy(update={"notes": notes})
    raise RequestError(
        f"{first} and {second} are not of the same kind: give two records (.json) or two files of "
        "weights (.safetensors)"
    )


def print_pair(verdict: PairVerdict, title: str) -> int:
    """Prints the arrays, what there is to say of each, and the conclusion as the last line.

    Returns 0 (the same), 1 (they diverge) or 2 (they cannot be compared).
    """
    console, pairs = Console(highlight=False), in_rows(verdict.arrays)

    def say(text: str, style: str = "") -> None:
        console.print(Text(printable(text), style=style), soft_wrap=True)

    for text in (title, *verdict.notes):
        say(text)
    if pairs:
        console.print(table(pairs))
    for pair in pairs:
        if pair.note:
            say(f"{pair.array}: {pair.note}", "" if pair.passed else "red")
    say(verdict.conclusion, "green bold" if verdict.passed else "red bold")
    return 2 if verdict.differences else int(not verdict.passed)


def in_rows(pairs: Sequence[ArrayPair]) -> list[ArrayPair]:
    """Those of runs in the order of computing; those of weights with the farthest first."""
    if any(pair.check for pair in pairs):
        return list(pairs)
    return sorted(pairs, key=lambda x: (x.distance is not None, x.passed, -(x.distance or 0)))


def table(pairs: Sequence[ArrayPair]) -> Table:
    """A row for each pair, and a heading above those of each check."""
    made = tables.table(["array", "distance", "limit", "farthest at"], left=(0, 3))
    before = ""
    for pair in pairs:
        if pair.check != before:
            before = pair.check
            made.add_section()
            made.add_row(Text(HEADINGS[before], style="bold"))
        distance = "none" if pair.distance is None else f"{pair.distance:.1e}"
        mark, style = ("✓", "green") if pair.passed else ("✗", "red bold")
        limit = f"≤ {pair.limit:.1e}" if pair.limit else "exact"
        if pair.limit is None:
            limit = "none"
            mark, style = (" ", "") if pair.passed else (mark, style)
        figure = Text(f"{distance} {mark}", style=style)
        made.add_row(Text(printable(pair.array)), figure, limit, Text(pair.where))
    return made
