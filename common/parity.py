"""Compares the records of a folder: whether all frameworks computed the same.

Or finds where two files begin to diverge: two records, or two files of weights.
"""

if __name__ == "__main__":
    import os

    from common.base.machine import keep_memory

    # Read when NumPy is loaded: runs are computed again several at a time, each on one core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_memory()  # a sixth of the time of ResNet-18's steps

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError, printable
from common.base.files import destination, require_writable, write_text
from common.base.machine import now
from common.chapters.spec import CHAPTERS
from common.chapters.suites import Suite
from common.compare.comparison import verdict_on
from common.compare.findings import Verdict
from common.compare.folder import examine, in_no_suite, only_in_grid
from common.diagnose.suspects import Suspect, suspects
from common.pairs.runs import compare_files
from common.report.text import page, print_pair, print_verdict
from common.terminal.command import DEVICES, Parser, count, distance, path, status

PAGE_NEEDS: Final = "jinja2"
"""What frameworks' environments lack."""

USAGE: Final = """\
python -m common.parity [--frameworks ...] [--chapters ...] [--planned] [--more-devices]
                               [--brief] [--gpus N] [--without-gpu ...] DIR
       python -m common.parity [--tolerance X] FILE FILE"""

EXAMPLES: Final = """\
examples:
  python -m common.parity results
  python -m common.parity results/mine-scratch-1dev.json results/jax-scratch-1dev.json
  python -m common.parity mine.safetensors theirs.safetensors --tolerance 1e-4

exit status: 0: the same; 1: they diverge; 2: they cannot be read or compared
"""


def parser() -> Parser:
    command = Parser("python -m common.parity", __doc__, usage=USAGE, epilog=EXAMPLES)
    add = command.add_argument
    add("folder", type=path, metavar="DIR", help="where the records are")
    for flag, known in (("--frameworks", FRAMEWORKS), ("--chapters", CHAPTERS)):
        add(flag, nargs="+", choices=known, default=known, help="compare only these")
    planned = "require all runs of plain `nox`, as it plans them (compare what is there)"
    add("--planned", action="store_true", help=planned)
    more = "expect the runs that `nox -s grid` adds, too"
    add("--more-devices", action="store_true", help=more)
    gpus = "expect the runs on GPUs, too, on at most N"
    add("--gpus", type=count(DEVICES), metavar="N", default=0, help=gpus)
    without = "frameworks that have no build for these GPUs: they are compared only on the CPU"
    add("--without-gpu", nargs="+", choices=FRAMEWORKS, default=(), help=without)
    brief = "print one line, and no table, for a suite whose checks have all passed, as plain `nox`"
    add("--brief", action="store_true", help=brief)
    add("second", type=path, nargs="?", metavar="FILE", help="two files instead")
    far = "for two files: how far apart arrays may be, relative to the second's largest entry "
    far += "(default of records: the project's limits; of weights: the machine epsilon of the "
    far += "coarser dtype, 1.2e-7 for float32, 7.8e-3 for bfloat16)"
    add("--tolerance", type=distance, metavar="X", help=far)
    return command


def of_two_files(command: Parser, flags: argparse.Namespace) -> bool:
    """Whether two files are compared; ends the program on flags that do not go with it."""
    files = flags.second is not None
    if flags.folder.is_file() and not files:
        command.error(f"{flags.folder} is a file: name another to compare it with, or a folder")
    others = sorted(vars(flags).keys() - {"folder", "second", "tolerance"})
    for name in others if files else ["tolerance"]:
        if getattr(flags, name) != command.get_default(name):
            what = "two files" if files else "a folder"
            command.error(f"--{name.replace('_', '-')} means nothing for {what}")
    return files


def compare_folder(flags: argparse.Namespace) -> int:
    """Writes and prints the verdict on a folder. Returns 0 or 1."""
    for name in ("parity.json", "parity.html"):
        with suppress(OSError):  # a verdict must not outlive a later comparison
            destination(flags.folder / name).unlink()
    planned = partial(Suite.counts, more_devices=flags.more_devices, gpus=flags.gpus)
    examined = examine(
        flags.folder,
        frameworks=flags.frameworks,
        chapters=flags.chapters,
        planned=planned if flags.planned else None,
        without_gpu=flags.without_gpu,
    )
    as_plain_nox = flags.planned and not flags.more_devices
    not_run = only_in_grid(flags.chapters) if as_plain_nox else ()
    ignored = () if flags.planned else in_no_suite(flags.folder, examined)
    verdict = verdict_on(examined, not_run, ignored, now())
    accused = suspects(examined)
    no_page = write_verdict(flags.folder, verdict, accused)
    if flags.brief and (flags.folder / "parity.html").exists():
        print(f"every figure: {flags.folder / 'parity.html'}")
    print_verdict(verdict, accused, brief=flags.brief)
    print(no_page, end="")
    return 0 if verdict.passed else 1


def write_verdict(folder: Path, verdict: Verdict, accused: Sequence[Suspect]) -> str:
    """Writes the verdict and its page; returns a line if the page cannot be made."""
    try:
        require_writable(folder)
        write_text(folder / "parity.json", verdict.model_dump_json(indent=2) + "\n")
        write_text(folder / "parity.html", page(verdict, accused))
    except ModuleNotFoundError as missing:
        if missing.name != PAGE_NEEDS:
            raise
        return f"no {folder / 'parity.html'}: {PAGE_NEEDS} makes it: nox -s parity -- {folder}\n"
    except (RequestError, OSError) as error:
        print(f"python -m common.parity: the verdict is only printed: {error}", file=sys.stderr)
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Compares a folder or two files, as the flags say. Returns 0, 1 (they diverge) or 2."""
    command = parser()
    flags = command.parse_intermixed_args(argv)
    try:
        if not of_two_files(command, flags):
            return compare_folder(flags)
        verdict = compare_files(flags.folder, flags.second, flags.tolerance)
        return print_pair(verdict, f"{flags.folder} against {flags.second}")
    except (RequestError, RunError, OSError) as error:
        print(f"{command.prog}: error: {printable(str(error))}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(status("python -m common.parity", main))
