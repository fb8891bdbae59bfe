"""Compares all records of a folder: what `python -m common.parity DIR` prints, as a call."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.answers import Answer, answers_of, expected_of
from common.errors import RequestError
from common.gather import device_counts, gather
from common.machine import now
from common.suites import CHAPTERS, FRAMEWORKS, SUITES
from common.verdict import Examined, Verdict, compare_suite


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
