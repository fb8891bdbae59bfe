"""The table and the picture of a folder of runs."""

import re
from pathlib import Path

import agreement
import pytest

from common.base.errors import RequestError, RunError
from common.records.store import read_record, unfinished, write_record
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
    agreement.edit(path, epochs=[])
    with pytest.raises(RunError, match=r"0 of 3 epochs .*jax-scratch-1dev\.json"):
        main([str(runs)])


def test_a_later_run_that_is_not_complete_is_told(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = runs / "jax-scratch-1dev.json"
    later = {"status": "failed", "started": "2001-01-01T00:00:00+00:00", "tensors": None}
    write_record(runs, read_record(path).model_copy(update=later))
    main([str(runs)])
    line = f"a later run of it failed: run it again, or remove {unfinished(path)}."
    assert f"jax-scratch-1dev comes from an earlier run: {line}" in capsys.readouterr().out
