"""A later run that is not complete: nobody takes the earlier record for what it has left."""

from pathlib import Path

import pytest
from agreement import failed, failures

from common import summary
from common.compare.folder import judge
from common.records.store import read_record, unfinished, write_record

NAME = "jax-scratch-2dev.json"
BECAME = {
    "running": "is running, or was killed",
    "failed": "failed",
    "interrupted": "was interrupted",
}


def begin_again(path: Path, status: str) -> Path:
    """Leaves what a later run would of the same name; returns where that is."""
    changes = {"status": status, "started": "2001-01-01T00:00:00+00:00", "tensors": None}
    write_record(path.parent, read_record(path).model_copy(update=changes))
    return unfinished(path)


@pytest.mark.parametrize("status", BECAME)
def test_the_comparison_is_red_and_says_what_became_of_it(results: Path, status: str) -> None:
    beside = begin_again(results / "float64" / NAME, status)
    verdict = judge(results)
    assert failed(verdict) == {("record", "jax", 2)}
    note = f"a later run of it {BECAME[status]}: run it again, or remove {beside}"
    assert [check.note for check in failures(verdict)] == [note]
    beside.unlink()
    assert judge(results).passed


def test_so_it_is_beside_what_is_no_record(results: Path) -> None:
    unfinished(results / "float64" / NAME).write_text("{")
    (check,) = failures(judge(results))
    assert "a later run of it has left a record that cannot be read" in check.note


def test_the_table_of_runs_says_so_too(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = runs / "jax-scratch-1dev.json"
    assert summary.main([str(runs)]) == 0
    assert "later run" not in capsys.readouterr().out
    beside = begin_again(path, "failed")
    assert summary.main([str(runs)]) == 0
    line = f"a later run of it failed: run it again, or remove {beside}."
    assert f"jax-scratch-1dev is of an earlier run: {line}" in capsys.readouterr().out
