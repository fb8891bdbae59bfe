"""Writes the tables of docs/reliability.md and docs/hosts.md from the faults that tests have made.

python tests/support/reliability.py faults.jsonl --command "nox -s faults"

Each line of the file is a fault, as `pytest --figures FILE` leaves it. A table stands between two
lines of its page. It stays as it is if no fault belongs in it.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

from hosts_hurt import KINDS, MOMENTS

from common.backends.frameworks import FRAMEWORKS
from common.terminal.tables import markdown
from sessions.tables import put

Line = dict[str, Any]

DOCS: Final = Path("docs")


def faults(lines: Sequence[Line]) -> list[str]:
    """How many faults of each kind were made, and in how many a test has failed."""
    kinds = {kind: lines_of(lines, fault=kind) for kind in sorted({x["fault"] for x in lines})}
    rows = []
    for kind, own in {**kinds, "all": lines}.items():
        there = {line["framework"] for line in own}
        names = ["NumPy"] * ("" in there) + [each for each in FRAMEWORKS if each in there]
        rows.append([kind, total(own, "number"), ", ".join(names), total(own, "lost")])
    return markdown(("fault", "made", "with", "lost"), rows, (0, 2))


def kills(lines: Sequence[Line]) -> list[str]:
    """How often runs of each module were killed, by their number of devices."""
    devices = sorted({line["devices"] for line in lines})
    rows = []
    for framework, chapter in dict.fromkeys((each["framework"], each["chapter"]) for each in lines):
        own = lines_of(lines, framework=framework, chapter=chapter)
        counts = (total(lines_of(own, devices=k), "number") for k in devices)
        rows.append([f"`frameworks.{framework}.{chapter}`", *counts])
    return markdown(("module", *(f"on {k} device{'s' * (k > 1)}" for k in devices)), rows)


def seconds(lines: Sequence[Line]) -> list[str]:
    """The most seconds of each framework, fault and moment."""
    rows = []
    for framework, (what, kind) in product(FRAMEWORKS, KINDS.items()):
        own = lines_of(lines, framework=framework, fault=kind)
        found = [[x["seconds"] for x in lines_of(own, moment=moment)] for moment in MOMENTS]
        if own:
            rows.append([framework, what, *(f"{max(x):.0f}" if x else "–" for x in found)])
    headings = ("framework", "lost", *(f"seconds, {moment}" for moment in MOMENTS))
    return markdown(headings, rows, (0, 1))


Table = tuple[str, Callable[[Line], bool], Callable[[Sequence[Line]], list[str]]]

TABLES: Final[dict[str, Table]] = {
    "faults": ("reliability.md", lambda line: True, faults),
    "kills": ("reliability.md", lambda line: "SIGKILL" in line["fault"], kills),
    "seconds": ("hosts.md", lambda line: "moment" in line, seconds),
}
"""By the name of a table: its page, which lines belong in it, and what makes it of them."""


def lines_of(lines: Sequence[Line], **values: Any) -> list[Line]:
    """Those that have these values."""
    return [line for line in lines if all(line.get(k) == v for k, v in values.items())]


def total(lines: Sequence[Line], name: str) -> str:
    """A sum over lines, in words."""
    return f"{sum(line[name] for line in lines):,}"


def source(lines: Sequence[Line], command: str) -> str:
    """Where figures come from: the machines, the first and the last date, the command."""
    dates = sorted({line["date"] for line in lines})
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    return f"{'; '.join(sorted({line['machine'] for line in lines}))}; {when}; `{command}`."


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the tables."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("file", type=Path, help="the faults")
    made.add_argument("--command", required=True, help="what they come from")
    made.add_argument("--docs", type=Path, default=DOCS, metavar="DIR", help="(%(default)s)")
    flags = made.parse_args(argv)
    lines = [json.loads(line) for line in flags.file.read_text(encoding="utf-8").splitlines()]
    for name, (page, belongs, table) in TABLES.items():
        if own := [line for line in lines if belongs(line)]:
            text = "\n".join([*table(own), "", source(own, flags.command)])
            put(flags.docs / page, name, "tests/support/reliability.py", text)


if __name__ == "__main__":
    main()
