"""Writes the table of seconds in docs/hosts.md from the figures of faults in runs over hosts.

python tests/support/hosts_seconds.py faults.jsonl --command "nox -s faults"

A figure with a moment is one of them. The table stands between two lines of the page; without such
a figure it stays as it is.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hosts_hurt import KINDS, MOMENTS
from reliability import Line, read, source

from common.backends.frameworks import FRAMEWORKS
from common.base.files import write_text
from common.terminal.command import status
from common.terminal.tables import between, markdown

PAGE: Final = Path("docs/hosts.md")
BEGIN: Final = "<!-- seconds: tests/support/hosts_seconds.py writes what follows -->"
END: Final = "<!-- seconds end -->"


def table(lines: Sequence[Line], command: str) -> str:
    """The table, and where it comes from."""
    headings = ("framework", "lost", *(f"seconds, {moment}" for moment in MOMENTS))
    rows = markdown(headings, _rows(lines), (0, 1))
    return "\n".join([*rows, "", source(lines, command)])


def _rows(lines: Sequence[Line]) -> Iterator[list[str]]:
    """A row for each framework and each fault: the most seconds of each moment."""
    for framework in FRAMEWORKS:
        for what, kind in KINDS.items():
            own = [
                each for each in lines if (each["framework"], each["fault"]) == (framework, kind)
            ]
            if own:
                yield [framework, what, *(_most(own, moment) for moment in MOMENTS)]


def _most(lines: Sequence[Line], moment: str) -> str:
    found = [float(each["seconds"]) for each in lines if each["moment"] == moment]
    return f"{max(found):.0f}" if found else "–"


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the table. Returns 0; raises RunError if there is no place for it."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files of figures")
    made.add_argument("--command", required=True, help="what they come from")
    made.add_argument("--out", type=Path, default=PAGE, metavar="FILE", help="(%(default)s)")
    flags = made.parse_args(argv)
    lines = [line for line in read(flags.files) if "moment" in line]
    if lines:
        page = flags.out.read_text(encoding="utf-8")
        write_text(flags.out, between(page, BEGIN, END, table(lines, flags.command)))
    return 0


if __name__ == "__main__":
    raise SystemExit(status("hosts_seconds.py", main))
