"""The page on what each strategy sends and keeps has what plans predict."""

from pathlib import Path

from common.chapters.strategies import StrategiesOptions
from common.parallel.strategies import STRATEGIES

PAGE = Path(__file__).parents[2] / "docs/splitting.md"


def test_the_page_has_what_plans_predict() -> None:
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line[:1] == "|"]
    rows = [[cell.strip().replace(",", "") for cell in line.split("|")[1:-1]] for line in lines]
    table = rows[2:8]
    assert [row[0] for row in table] == [*STRATEGIES]
    for strategy, *sizes in table:
        usage = StrategiesOptions(strategy, depth=8).usage(4, 256, 4)
        sent, kept = (
            [*map(sum, zip(*by_kind.values(), strict=True))] for by_kind in (usage.sent, usage.peak)
        )
        assert [*map(int, sizes)] == [sum(sent), max(sent), max(kept)]
