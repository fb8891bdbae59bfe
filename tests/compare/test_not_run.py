"""The verdict of plain `nox` says what it leaves to `nox -s grid`."""

from pathlib import Path

from common.chapters.chapters import CHAPTERS, SUITES
from common.compare.folder import only_in_grid, verdict_on
from common.grid import runs
from common.report.text import not_run


def folders_run(*, more_devices: bool) -> set[str]:
    planned = runs("pytorch", Path(), more_devices=more_devices)
    return {str(given["out"]) for _, given in planned}


def test_every_suite_is_run_by_plain_nox_or_named() -> None:
    plain, added = (folders_run(more_devices=more) for more in (False, True))
    assert added - plain == {
        suite.folder
        for suite in SUITES
        if f"{suite.chapter} {suite.name}" in only_in_grid(CHAPTERS)
    }


def test_a_line_says_how_many_and_the_json_which() -> None:
    verdict = verdict_on([], only_in_grid(CHAPTERS))
    assert not_run(verdict).startswith(
        f"not run: 3 or more devices, and {len(only_in_grid(CHAPTERS))} of the suites"
    )
    assert verdict.model_dump()["not_run"] == only_in_grid(CHAPTERS)
