"""Two files compared: a table on the terminal, and the conclusion below it."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from common.base.errors import RequestError
from common.compare.findings import Check
from common.models.weights_file import bfloat16_note, load_arrays
from common.pairs.arrays import PairVerdict, compare_arrays, heading
from common.pairs.runs import compare_runs, read_run
from common.terminal.tables import Cell, table
from common.terminal.text import printable


def compare_files(first: Path, second: Path, tolerance: float | None) -> PairVerdict:
    """The verdict on two records or files of weights. Raises RequestError or RunError."""
    kinds = {path.suffix.lower() for path in (first, second)}
    if kinds == {".json"}:
        return compare_runs(read_run(first), read_run(second), tolerance)
    if kinds == {".safetensors"}:
        verdict = compare_arrays(load_arrays(first), load_arrays(second), tolerance)
        return replace(verdict, notes=[*filter(None, map(bfloat16_note, (first, second)))])
    advice = "give two records (.json) or two files of weights (.safetensors)"
    raise RequestError(f"{first} and {second} are not of the same kind: {advice}")


def print_pair(verdict: PairVerdict, title: str) -> int:
    """Prints the verdict. Returns 0 (the same), 1 (they diverge) or 2 (not comparable)."""
    console = Console(highlight=False)
    checks = verdict.checks
    if not any(check.check for check in checks):  # of weights, the farthest come first
        checks = sorted(
            checks, key=lambda x: (x.distance is not None, x.passed, -(x.distance or 0))
        )

    def say(text: str, style: str = "") -> None:
        console.print(Text(printable(text), style=style), soft_wrap=True)

    for text in (title, *verdict.notes):
        say(text)
    if checks:
        headings = ["compared", "distance", "limit", "farthest at"]
        console.print(table(headings, map(row, checks), left=(0, 3)))
    for check in checks:
        if check.note:
            say(f"{heading(check)}: {check.note}", "" if check.passed else "red")
    say(verdict.conclusion, "green bold" if verdict.passed else "red bold")
    return 2 if verdict.differences else int(not verdict.passed)


def row(check: Check) -> list[str | Cell]:
    distance = "none" if check.distance is None else f"{check.distance:.1e}"
    limit = f"≤ {check.tolerance:.1e}" if check.tolerance else "exact"
    passed: bool | None = check.passed
    if check.tolerance is None:
        limit = "none"
        passed = None if check.passed else False
    mark = {True: "✓", False: "✗", None: " "}[passed]
    figure = f"{distance} {mark}", passed
    return [printable(heading(check)), figure, limit, printable(check.where)]
