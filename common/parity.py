"""Compares the records of a folder and tells whether all frameworks computed the same.

python -m common.parity results
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.arguments import Parser
from common.errors import RequestError
from common.files import write_text
from common.gather import Found, device_counts, gather
from common.machine import now
from common.suites import CHAPTERS, FRAMEWORKS, SUITE_NAMES, SUITES
from common.verdict import (
    Answer,
    Comparison,
    Verdict,
    answers_of,
    compare_suite,
    expected_of,
)


@dataclass(frozen=True)
class Examined:
    """One suite: its verdict, the records that it rests on, and what they were compared with."""

    comparison: Comparison
    found: Sequence[Found]
    answers: Mapping[int | None, Answer]


def examine(
    folder: Path,
    *,
    frameworks: Sequence[str] = FRAMEWORKS,
    chapters: Sequence[str] = CHAPTERS,
    suites: Sequence[str] = (),
    more_devices: bool = False,
) -> list[Examined]:
    """Compares all records in `folder` and in the suites' folders below it.

    Every framework is expected to have a record for every device count. `suites` names the
    suites that must be there just as they are planned, on 1 and 2 devices or, with `more_devices`,
    on all; without it, whatever is there is compared.
    Raises RequestError if there is nothing to compare.
    """
    examined: list[Examined] = []
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
            answers = expected_of(found, exact)
            comparison = compare_suite(suite.name, chapter, found, answers)
            examined.append(Examined(comparison, found, answers))
            if suite.name.startswith("float64"):
                exact |= answers_of(found)
    if not examined:
        raise RequestError(f"there are no records in {folder}: plain `nox` makes them")
    return examined


def judge(folder: Path, **chosen: Any) -> Verdict:
    """The verdict on what `examine` finds; it takes the same arguments, and raises the same."""
    return verdict_on(examine(folder, **chosen))


def verdict_on(examined: Sequence[Examined]) -> Verdict:
    """Passed, if every check of every suite has."""
    comparisons = [each.comparison for each in examined]
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
    """Prints the table and writes it as JSON, Markdown and a page. Returns 0, 1 (failed) or 2."""
    flags = parser().parse_args(argv)
    from common.page import page
    from common.report import print_verdict, write_verdict

    try:
        examined = examine(
            flags.folder,
            frameworks=flags.frameworks,
            chapters=flags.chapters,
            suites=flags.suites,
            more_devices=flags.more_devices,
        )
        verdict = verdict_on(examined)
        write_verdict(flags.folder, verdict)
        write_text(flags.folder / "parity.html", page(verdict, examined))
    except (RequestError, OSError) as error:
        print(f"python -m common.parity: error: {error}", file=sys.stderr)
        return 2
    print_verdict(verdict)
    return 0 if verdict.passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
