"""Writes docs/reliability.md from the figures of tests of faults, and of inputs made at random.

python tests/support/reliability.py faults.jsonl [idx.json ...] --command "nox -s faults"

Each line of a .jsonl file is a fault, as `pytest --figures FILE` leaves it; a .json file is what a
reader was given, as `python -m fuzz` leaves it. Without any, what the page has of readers stays.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.base.files import write_text
from common.terminal.command import status
from common.terminal.tables import markdown

Line = dict[str, Any]

PAGE: Final = Path("docs/reliability.md")

INTRODUCTION: Final = """\
# What goes wrong, and what is lost

Each fault below was made on purpose, with real processes, disks and servers. Afterwards:

- the command ended in time, with the right status and one line that says what to do;
- nothing half-written was taken for whole;
- an earlier record that was complete still was, with its own tensors;
- a run that keeps checkpoints resumed with `--resume`, and ended with the same bits as one that
  was never stopped.

A fault counts as lost if anything else was seen.
"""

KILLS: Final = """\
## Runs killed at a random moment

How often a run of each module was killed and resumed from a checkpoint.
"""

READERS: Final = """\
## Files made at random

Each reader was given files made at random from good ones. It takes them or refuses them in a line.
"""


def read(paths: Iterable[Path]) -> list[Line]:
    """The lines of all files."""
    found: list[Line] = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        found += map(json.loads, [text] if path.suffix == ".json" else text.splitlines())
    return found


def page(lines: Sequence[Line], command: str, earlier: str = "") -> str:
    """The page that these figures make; `command` is the one that the faults come from.

    Without figures of any reader, it has what the page of an earlier time says of them.
    """
    faults = [line for line in lines if "fault" in line]
    readers = [line for line in lines if "reader" in line]
    parts = [INTRODUCTION, *markdown(("fault", "made", "with", "lost"), _faults(faults), (0, 2))]
    parts += ["", source(faults, command)]
    if kills := [line for line in faults if "SIGKILL" in line["fault"]]:
        devices = sorted({line["devices"] for line in kills})
        headings = ("module", *(f"on {k} device{'s' * (k > 1)}" for k in devices))
        parts += ["", KILLS, *markdown(headings, _kills(kills, devices))]
    if readers:
        headings = ("reader", "inputs", "seconds", "findings")
        parts += ["", READERS, *markdown(headings, _readers(readers))]
        parts += ["", source(readers, "nox -s fuzz")]
    elif READERS in earlier:
        parts += ["", READERS, earlier.rstrip("\n").partition(f"{READERS}\n")[2]]
    return "\n".join(parts) + "\n"


def source(lines: Sequence[Line], command: str) -> str:
    """Where figures come from: the machines, the first and the last date, the command."""
    dates = sorted({line["date"] for line in lines})
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    return f"{'; '.join(sorted({line['machine'] for line in lines}))}; {when}; `{command}`."


def _faults(lines: Sequence[Line]) -> Iterator[list[str]]:
    """A row for each kind of fault, and one for all of them."""
    for kind in sorted({line["fault"] for line in lines}):
        own = [line for line in lines if line["fault"] == kind]
        yield [kind, *_made_and_lost(own)]
    yield ["all", *_made_and_lost(lines)]


def _kills(lines: Sequence[Line], devices: Sequence[int]) -> Iterator[list[str]]:
    """A row for each module: how often its runs were killed, by their number of devices."""
    modules = dict.fromkeys((line["framework"], line["chapter"]) for line in lines)
    for module in modules:
        own = [line for line in lines if (line["framework"], line["chapter"]) == module]
        counts = (_sum([each for each in own if each["devices"] == k], "number") for k in devices)
        yield [f"`frameworks.{'.'.join(module)}`", *(f"{count:,.0f}" for count in counts)]


def _made_and_lost(lines: Sequence[Line]) -> list[str]:
    """How many faults were made, in which frameworks, and of how many a test has failed."""
    made, lost = (f"{_sum(lines, name):,.0f}" for name in ("number", "lost"))
    return [made, _frameworks(lines), lost]


def _frameworks(lines: Sequence[Line]) -> str:
    """The frameworks in which there were any; NumPy stands for tests that need none."""
    there = {line["framework"] for line in lines}
    return ", ".join([*(["NumPy"] if "" in there else []), *(f for f in FRAMEWORKS if f in there)])


def _readers(lines: Sequence[Line]) -> Iterator[list[str]]:
    for reader in sorted({line["reader"] for line in lines}):
        own = [line for line in lines if line["reader"] == reader]
        inputs, seconds = (f"{_sum(own, each):,.0f}" for each in ("inputs", "seconds"))
        yield [reader, inputs, seconds, str(sum(len(line["findings"]) for line in own))]


def _sum(lines: Sequence[Line], name: str) -> float:
    return sum(float(line[name]) for line in lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the page. Returns 0; raises RunError if a file holds no figures."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files of figures")
    made.add_argument("--command", required=True, help="what they come from")
    made.add_argument("--out", type=Path, default=PAGE, metavar="FILE", help="(%(default)s)")
    flags = made.parse_args(argv)
    lines = read(flags.files)
    if not any("fault" in line for line in lines):
        raise RunError("there are no faults in these files: pytest --figures FILE leaves them")
    earlier = flags.out.read_text(encoding="utf-8") if flags.out.is_file() else ""
    write_text(flags.out, page(lines, flags.command, earlier))
    return 0


if __name__ == "__main__":
    raise SystemExit(status("reliability.py", main))
