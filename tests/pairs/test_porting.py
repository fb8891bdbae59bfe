"""What the page on comparing one's own model shows is what happens."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/porting.md"


def test_the_examples_of_the_page_are_true(
    tmp_path: Path, agreeing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "results").symlink_to(agreeing)
    result = doctest.testfile(
        str(PAGE), module_relative=False, encoding="utf-8", optionflags=doctest.ELLIPSIS
    )
    assert result.attempted >= 20
    assert result.failed == 0
