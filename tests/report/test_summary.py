"""The table and the picture of a folder of runs."""

import re
from pathlib import Path

import agreement
import pytest

from common.base.errors import RequestError, RunError
from common.summary import main


def test_the_table_has_a_row_for_each_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(runs)])
    _, _, first, second, _, source = capsys.readouterr().out.splitlines()
    assert first.startswith("| pytorch | 2 | ")
    assert second == "| jax | 1 | 0.625 | 0.500 | 2.0 | 20 | 3 MiB |"
    assert re.match(
        r"scratch, preset book, 40 synthetic images; .+, \d+ cores; \d{4}-\d\d-", source
    )


def test_an_empty_folder_and_a_record_that_cannot_be_are_named(runs: Path) -> None:
    with pytest.raises(RequestError, match=f"there are no complete records in {runs}/empty"):
        main([f"{runs}/empty"])
    path = runs / "jax-scratch-1dev.json"
    path.write_text(path.read_text().replace('"seconds": 2.0', '"seconds": 1.0'))
    with pytest.raises(RunError, match=r"jax-scratch-1dev\.json .*was changed after"):
        main([str(runs)])


def test_a_run_that_is_not_complete_is_named(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agreement.edit(runs / "jax-scratch-1dev.json", status="failed")
    main([str(runs)])
    assert "\nNot complete, and left out: jax-scratch-1dev.\n" in capsys.readouterr().out
