"""The page on the environment names every variable that a run sets, or that may change rounding."""

from pathlib import Path

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.backends.loading import environment

PAGE = Path(__file__).parents[2] / "docs/environment.md"


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_page_names_what_a_run_sets_and_what_may_change_rounding(name: str) -> None:
    page, table = PAGE.read_text(encoding="utf-8"), environment(name)
    for variable in (*table.decided, *table.defaults, *table.rounding):
        assert f"`{variable}`" in page, variable
