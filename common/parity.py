"""Compares the records of a folder and tells whether the frameworks computed the same.

python -m common.parity results

Or compares two files, and tells where they begin to diverge: two records, or two files of weights.

python -m common.parity mine.safetensors theirs.safetensors
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError
from common.base.files import write_text
from common.chapters.chapters import CHAPTERS, SUITE_NAMES
from common.compare.folder import examine, verdict_on
from common.compare.layerwise import LayerTable, layer_tables, require_layers
from common.compare.suite import SuiteResult, Verdict
from common.terminal.command import Parser
from common.terminal.values import DEVICES, count, distance

PAGE_NEEDS: Final = ("jinja2", "matplotlib")
"""What the page alone takes; frameworks' environments do not have it."""

USAGE: Final = """\
python -m common.parity [--frameworks ...] [--chapters ...] [--suites ...] [--more-devices]
                               [--over-hosts N] [--layers] DIR
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
      the same, where training has made more of rounding

exit status: 0: the same; 1: they diverge; 2: not to be read, or not to be compared
"""


def parser() -> Parser:
    """The command line of the comparison."""
    made = Parser(prog="python -m common.parity", description=__doc__, allow_abbrev=False)
    made.add_argument("folder", type=Path, metavar="DIR", help="where the records are")
    made.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS)
    made.add_argument("--chapters", nargs="+", choices=CHAPTERS, default=CHAPTERS)
    made.add_argument(
        "--suites",
        nargs="+",
        choices=SUITE_NAMES,
        default=(),
        help="suites that must be there just as planned (compare whatever is there)",
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
        made.error(f"{flags.folder} is a file: name another one to compare it with, or a folder")
    of_folders = ("frameworks", "chapters", "suites", "more_devices", "over_hosts", "layers")
    for name in of_folders if files else ("tolerance",):
        if getattr(flags, name) != made.get_default(name):
            what = "two files" if files else "a folder"
            made.error(f"--{name.replace('_', '-')} means nothing for {what}")
    return files


def write_page(
    folder: Path,
    verdict: Verdict,
    examined: Sequence[SuiteResult],
    layered: Sequence[LayerTable],
) -> None:
    """Writes `parity.html` to `folder`; where it cannot be made, says so."""
    path = folder / "parity.html"
    try:
        from common.report.page import page

        write_text(path, page(folder, verdict, examined, layered))
    except ModuleNotFoundError as missing:
        if missing.name not in PAGE_NEEDS:
            raise
        print(f"no {path}: it takes {' and '.join(PAGE_NEEDS)}; `nox -s parity` has them")


def leave(
    folder: Path,
    verdict: Verdict,
    examined: Sequence[SuiteResult],
    layered: Sequence[LayerTable],
) -> None:
    """Writes the verdict and its page; says what cannot be written."""
    from common.report.text import VERDICT_FILES, write_verdict

    try:
        write_verdict(folder, verdict)
        write_page(folder, verdict, examined, layered)
    except (RequestError, OSError) as error:
        unwritten = f"the verdict is only printed: {error}"
        if any((folder / name).exists() for name in VERDICT_FILES):
            unwritten += "; the files there are of an earlier comparison"
        print(f"python -m common.parity: {unwritten}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table and writes it as JSON, Markdown and a page. Returns 0, 1 (failed) or 2.

    Of two files, it prints the table alone. What cannot be written is said, and changes no verdict.
    """
    made = parser()
    flags = made.parse_intermixed_args(argv)
    if two_files(made, flags):
        from common.report.two_files import report

        return report(flags.folder, flags.second, flags.tolerance)
    from common.report.layers import report_layers
    from common.report.text import print_verdict, withdraw_verdict

    withdraw_verdict(flags.folder)
    try:
        examined = examine(
            flags.folder,
            frameworks=flags.frameworks,
            chapters=flags.chapters,
            suites=flags.suites,
            more_devices=flags.more_devices,
            over_hosts=flags.over_hosts,
        )
        verdict = verdict_on(examined)
        layered = layer_tables(examined)
        if flags.layers:
            require_layers(layered)
    except (RequestError, OSError) as error:
        print(f"python -m common.parity: error: {error}", file=sys.stderr)
        return 2
    leave(flags.folder, verdict, examined, layered)
    print_verdict(verdict)
    together = not flags.layers or report_layers(layered)
    return 0 if verdict.passed and together else 1


if __name__ == "__main__":
    from common.terminal.command import status

    raise SystemExit(status("python -m common.parity", main))
