"""Two files compared: a table on the terminal, and the conclusion below it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from common.base.errors import RequestError
from common.compare.findings import HEADINGS, Check
from common.models.weights_file import bfloat16_note, load_arrays
from common.pairs.arrays import PairVerdict, compare_arrays
from common.pairs.runs import compare_runs, read_run
from common.terminal.tables import Cell, table
from common.terminal.text import printable


def compare_files(first: Path, second: Path, tolerance: float | None) -> PairVerdict:
    """The verdict on two records, or two files of weights.

    Raises RequestError or RunError if they are neither, or cannot be read.
    """
    kinds = {path.suffix.lower() for path in (first, second)}
    if kinds == {".json"}:
        return compare_runs(read_run(first), read_run(second), tolerance)
    if kinds == {".safetensors"}:
        verdict = compare_arrays(load_arrays(first), load_arrays(second), tolerance)
        return replace(verdict, notes=[*filter(None, map(bfloat16_note, (first, second)))])
    raise RequestError(
        f"{first} and {second} are not of the same kind: give two records (.json) or two files of "
        "weights (.safetensors)"
    )


def print_pair(verdict: PairVerdict, title: str) -> int:
    """Prints the arrays, a note on some, and the conclusion.

    Returns 0 (the same), 1 (they diverge) or 2 (they cannot be compared).
    """
    console, pairs = Console(highlight=False), verdict.arrays
    if not any(pair.check for pair in pairs):  # of weights, the farthest come first
        pairs = sorted(pairs, key=lambda x: (x.distance is not None, x.passed, -(x.distance or 0)))

    def say(text: str, style: str = "") -> None:
        console.print(Text(printable(text), style=style), soft_wrap=True)

    for text in (title, *verdict.notes):
        say(text)
    if pairs:
        headings = ["array", "distance", "limit", "farthest at"]
        console.print(table(headings, rows(pairs), left=(0, 3)))
    for pair in pairs:
        if pair.note:
            say(f"{pair.array}: {pair.note}", "" if pair.passed else "red")
    say(verdict.conclusion, "green bold" if verdict.passed else "red bold")
    return 2 if verdict.differences else int(not verdict.passed)


def rows(pairs: Sequence[Check]) -> Iterator[list[str | Cell]]:
    """A row for each pair, and a heading above those of each check."""
    before = ""
    for pair in pairs:
        if pair.check != before:
            before = pair.check
            yield [(HEADINGS[before], None)]
        distance = "none" if pair.distance is None else f"{pair.distance:.1e}"
        limit = f"≤ {pair.tolerance:.1e}" if pair.tolerance else "exact"
        passed: bool | None = pair.passed
        if pair.tolerance is None:
            limit, passed = "none", None if passed else False
        mark = {True: "✓", False: "✗", None: " "}[passed]
        yield [printable(pair.array), (f"{distance} {mark}", passed), limit, pair.where]
