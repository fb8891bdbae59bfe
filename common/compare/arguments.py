"""The command line of the comparison. Only the standard library, so that `--help` is instant."""

import argparse
from pathlib import Path
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.chapters.chapters import CHAPTERS, SUITE_NAMES
from common.terminal.command import Parser
from common.terminal.values import DEVICES, count, distance

OF_FOLDERS: Final = (
    *("frameworks", "chapters", "suites", "more_devices", "over_hosts", "gpus", "without_gpu"),
    "layers",
)
"""Flags that mean nothing for two files."""

USAGE: Final = """\
python -m common.parity [--frameworks ...] [--chapters ...] [--suites ...] [--more-devices]
                               [--over-hosts N] [--gpus N] [--without-gpu ...] [--layers] DIR
       python -m common.parity [--tolerance X] FILE FILE"""

EXAMPLES: Final = """\
examples:
  python -m common.parity results
      all records in a folder, and in the suites' folders below it
  python -m common.parity results --layers
      the same, and in which layer of ResNet-18 two frameworks diverge (runs made with --layers)
  python -m common.parity results/mine-scratch-1dev.json results/jax-scratch-1dev.json
      two runs: is the setting the same, and which array and which step diverge first
  python -m common.parity mine.safetensors theirs.safetensors
      two files of weights, under whatever names: what differs, is transposed or is renamed
  python -m common.parity mine.safetensors theirs.safetensors --tolerance 1e-4
      the same, where training has amplified rounding

exit status: 0: the same; 1: they diverge; 2: they cannot be read or compared
"""


def parser(description: str | None = None) -> Parser:
    """The command line of the comparison."""
    made = Parser(prog="python -m common.parity", description=description, allow_abbrev=False)
    made.add_argument("folder", type=Path, metavar="DIR", help="where the records are")
    made.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS)
    made.add_argument("--chapters", nargs="+", choices=CHAPTERS, default=CHAPTERS)
    made.add_argument(
        "--suites",
        nargs="*",
        choices=SUITE_NAMES,
        metavar="NAME",
        help="compare only these suites, and require all their planned runs; with no NAME, require "
        f"all suites: {', '.join(SUITE_NAMES)} (compare all runs that are there)",
    )
    made.add_argument(
        "--more-devices",
        action="store_true",
        help="of these suites, expect the runs on more than two devices, too",
    )
    made.add_argument(
        "--over-hosts",
        type=count(DEVICES),
        metavar="N",
        default=0,
        help="of these suites, expect instead the runs over hosts, on at most N devices",
    )
    made.add_argument(
        "--gpus",
        type=count(DEVICES),
        metavar="N",
        default=0,
        help="of these suites, expect the runs on GPUs, too, on at most N",
    )
    made.add_argument(
        "--without-gpu",
        nargs="+",
        choices=FRAMEWORKS,
        default=(),
        help="frameworks that have no build for these GPUs: they are compared on the CPU alone",
    )
    made.add_argument(
        "--layers",
        action="store_true",
        help="also compare ResNet-18 layer by layer, in the runs that were made with --layers",
    )
    made.add_argument("second", type=Path, nargs="?", metavar="FILE", help="two files instead")
    made.add_argument(
        "--tolerance",
        type=distance,
        metavar="X",
        help="for two files: how far apart arrays may be, relative to the second's largest entry "
        "(default for records: the project's limits; for weights: one rounding, 1.2e-7 in float32)",
    )
    made.usage, made.epilog = USAGE, EXAMPLES
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    return made


def two_files(made: Parser, flags: argparse.Namespace) -> bool:
    """Whether two files are to be compared; ends the program on flags that do not go with it."""
    files = flags.second is not None
    if flags.folder.is_file() and not files:
        made.error(f"{flags.folder} is a file: name another to compare it with, or a folder")
    for name in OF_FOLDERS if files else ("tolerance",):
        if getattr(flags, name) != made.get_default(name):
            what = "two files" if files else "a folder"
            made.error(f"--{name.replace('_', '-')} means nothing for {what}")
    return files


def gpus_of(flags: argparse.Namespace) -> dict[str, int]:
    """How many GPUs each framework has; empty if none are asked for."""
    frameworks = [each for each in flags.frameworks if each not in flags.without_gpu]
    return dict.fromkeys(frameworks, flags.gpus) if flags.gpus else {}
