"""Tells how much of an accuracy is chance: its spread over seeds, and between frameworks.

python -m common.seeds results/seeds

All frameworks start from the same weights and see the same minibatches at the same seed, so their
accuracies are compared seed by seed. `nox -s seeds` makes the runs.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from common.backends.frameworks import FRAMEWORKS
from common.base.files import write_text
from common.chapters.chapters import CHAPTERS
from common.seeds.spread import FILE, spread_in
from common.seeds.text import markdown, print_spread
from common.terminal.command import Parser, status
from common.terminal.values import DEVICES, REPEATS, count


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
    add("--chapter", choices=CHAPTERS, default=CHAPTERS[0], help="whose runs (%(default)s)")
    add("--frameworks", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS, help="these alone")
    add(
        "--seeds",
        type=count(REPEATS),
        metavar="N",
        help="expect the seeds 0 to N - 1 (those there are)",
    )
    add("--devices", type=count(DEVICES), default=1, metavar="N", help="of a run (%(default)s)")
    return made


def main(argv: Sequence[str] | None = None) -> None:
    """Prints the spread, and writes it as JSON and Markdown. Raises RequestError or OSError."""
    flags = parser().parse_args(argv)
    spread = spread_in(
        flags.folder,
        chapter=flags.chapter,
        frameworks=list(dict.fromkeys(flags.frameworks)),
        seeds=range(flags.seeds or 0),
        devices=flags.devices,
    )
    write_text(flags.folder / FILE, spread.model_dump_json(indent=2) + "\n")
    write_text((flags.folder / FILE).with_suffix(".md"), markdown(spread))
    print_spread(spread)


if __name__ == "__main__":
    raise SystemExit(status("python -m common.seeds", main))
