"""The page on what each strategy sends and keeps has what plans predict."""

from pathlib import Path

from common.backends.frameworks import NATIVE
from common.chapters.strategies import StrategiesOptions

PAGE = Path(__file__).parents[2] / "docs/splitting.md"


def test_the_page_has_what_plans_predict() -> None:
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line[:1] == "|"]
    rows = [[cell.strip().replace(",", "") for cell in line.split("|")[1:-1]] for line in lines]
    tables = rows[2:14], rows[16:28]
    assert {row[0] for table in tables for row in table} == {*NATIVE}
    for sent, kept in zip(*tables, strict=True):
        assert sent[:2] == kept[:2]
        options = StrategiesOptions(sent[0], depth=8)
        usage = options.usage(int(sent[1]), 256, 4)
        for row, sizes in (
            (sent, [sum(each) for each in usage.sent.values()]),
            (kept, max(zip(*usage.peak.values(), strict=True), key=sum)),
        ):
            assert [int(cell) for cell in row[2:]] == [*sizes, sum(sizes)]
