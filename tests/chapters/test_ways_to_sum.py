"""Pages say how many allreduces there are: as many as the flag takes, all but one of them ours."""

import re
from pathlib import Path

import pytest

from common.chapters.scratch import ALLREDUCES
from common.parallel.schedules import SCHEDULES

ROOT = Path(__file__).parents[2]
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
PAGES = ("README.md", "docs/allreduce.md", "notebooks/chapters/allreduce.md")


def test_all_but_the_frameworks_own_are_schedules() -> None:
    assert list(ALLREDUCES) == [*SCHEDULES, "native"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_counts_them_right(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8").lower()
    told = set(re.findall(rf"\b({'|'.join(NUMBERS)}) (algorithms|schedules|ways)\b", text))
    right = {(NUMBERS[len(ALLREDUCES)], "ways"), (NUMBERS[len(SCHEDULES)], "schedules")}
    assert told <= right
    assert told
