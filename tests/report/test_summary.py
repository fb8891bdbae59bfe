"""The table and the picture of a folder of runs."""

import re
from pathlib import Path

import pytest

from common.summary import main


def test_the_table_has_a_row_for_each_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(runs)]) == 0
    _, _, first, second, _, source = capsys.readouterr().out.splitlines()
    assert first.startswith("| pytorch | 2 | ")
    assert second == "| jax | 1 | 0.625 | 0.500 | 2.0 | 1,500 | 3 MiB |"
    assert re.match(
        r"scratch, preset book, 40 synthetic images; .+, \d+ cores; \d{4}-\d\d-", source
    )


def test_an_empty_folder_and_a_damaged_record_are_named(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = runs / "empty"
    empty.mkdir()
    assert main([str(empty)]) == 2
    assert f"there are no complete records in {empty}" in capsys.readouterr().err
    (runs / "jax-scratch-1dev.json").write_text("{}")
    assert main([str(runs)]) == 1
    assert "jax-scratch-1dev.json is not a record" in capsys.readouterr().err
