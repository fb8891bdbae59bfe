"""Compares the records of a folder and tells whether all frameworks computed the same.

python -m common.parity results
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from common.arguments import Parser
from common.errors import RequestError
from common.gather import device_counts, gather
from common.machine import now
from common.suites import CHAPTERS, FRAMEWORKS, SUITE_NAMES, SUITES
from common.verdict import Answer, Comparison, Verdict, answers_of, compare_suite


def judge(
    folder: Path,
    *,
    frameworks: Sequence[str] = FRAMEWORKS,
    chapters: Sequence[str] = CHAPTERS,
    suites: Sequence[str] = (),
    more_devices: bool = False,
) -> Verdict:
    """Compares all records in `folder` and in the suites' folders below it.

    Every framework is expected to have a record for every device count. `suites` names the
    suites that must be there just as they are planned, on 1 and 2 devices or, with `more_devices`,
    on all; without it, whatever is there is compared.
    Raises RequestError if there is nothing to compare.
    """
    comparisons: list[Comparison] = []
    for chapter in chapters:
        exact: dict[int | None, Answer] = {}
        for suite in (suite for suite in SUITES if suite.chapter == chapter):
            planned = suite.name in suites
            place = folder / suite.folder
            if planned:
                counts = [*suite.devices, *(suite.more_devices if more_devices else ())]
            else:
                counts = device_counts(place, chapter, frameworks)
            if not counts:
                continue
            settings = suite.settings if planned else {}
            found = gather(place, chapter, frameworks, counts, settings)
            comparisons.append(compare_suite(suite.name, chapter, found, exact))
            if suite.name.startswith("float64"):
                exact |= answers_of(found)
    if not comparisons:
        raise RequestError(f"there are no records in {folder}: plain `nox` makes them")
    checks = [check for comparison in comparisons for check in comparison.checks]
    return Verdict(
        passed=all(check.passed for check in checks), created=now(), comparisons=comparisons
    )


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
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table and writes parity.json and parity.md. Returns 0, 1 (failed) or 2."""
    flags = parser().parse_args(argv)
    from common.report import print_verdict, write_verdict

    try:
        verdict = judge(
            flags.folder,
            frameworks=flags.frameworks,
            chapters=flags.chapters,
            suites=flags.suites,
            more_devices=flags.more_devices,
        )
        write_verdict(flags.folder, verdict)
    except (RequestError, OSError) as error:
        print(f"python -m common.parity: error: {error}", file=sys.stderr)
        return 2
    print_verdict(verdict)
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
