"""Writes the table of seconds in docs/hosts.md from the figures of faults in runs over hosts.

python tests/support/hosts_seconds.py faults.jsonl --command "nox -s faults"

A figure with a moment is one of them. The table stands between two lines of the page; without such
a figure it stays as it is.
"""

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Final

from hosts_hurt import KINDS, MOMENTS
from reliability import Line, read, source

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.base.files import write_text
from common.terminal.command import status
from common.terminal.tables import markdown

PAGE: Final = Path("docs/hosts.md")
BEGIN: Final = "<!-- seconds: tests/support/hosts_seconds.py writes what follows -->"
END: Final = "<!-- seconds end -->"


def table(lines: Sequence[Line], command: str) -> str:
    """The most seconds of each framework, fault and moment, and where they come from."""
    rows = []
    for framework, (what, kind) in product(FRAMEWORKS, KINDS.items()):
        own = [each for each in lines if (each["framework"], each["fault"]) == (framework, kind)]
        most = {
            each["moment"]: f"{each['seconds']:.0f}"
            for each in sorted(own, key=lambda each: float(each["seconds"]))
        }
        if own:
            rows.append([framework, what, *(most.get(moment, "–") for moment in MOMENTS)])
    headings = ("framework", "lost", *(f"seconds, {moment}" for moment in MOMENTS))
    return "\n".join([*markdown(headings, rows, (0, 1)), "", source(lines, command)])


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the table. Returns 0; raises RunError if there is no place for it."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files of figures")
    made.add_argument("--command", required=True, help="what they come from")
    made.add_argument("--out", type=Path, default=PAGE, metavar="FILE", help="(%(default)s)")
    flags = made.parse_args(argv)
    lines = [line for line in read(flags.files) if "moment" in line]
    if lines:
        before, found, rest = flags.out.read_text(encoding="utf-8").partition(BEGIN)
        _, closed, after = rest.partition(END)
        if not (found and closed):
            raise RunError(f"{flags.out} has no lines {BEGIN} and {END}")
        told = table(lines, flags.command)
        write_text(flags.out, f"{before}{BEGIN}\n\n{told}\n\n{END}{after}")
    return 0


if __name__ == "__main__":
    raise SystemExit(status("hosts_seconds.py", main))
