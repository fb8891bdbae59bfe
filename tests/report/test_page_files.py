"""What the page shows of other files beside the records, and what becomes of the page's own."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from agreement import edit
from markup import shown

import common.parity
from common.parity import main

ROOT = Path(__file__).parents[2]


def test_what_made_a_record_is_shown_as_a_shell_takes_it(results: Path) -> None:
    path = results / "float64/jax-scratch-1dev.json"
    edit(path, command=["python", "-m", "frameworks.jax.scratch", "--out=a b"])
    assert "python -m frameworks.jax.scratch '--out=a b'" in shown(results).text


def test_a_benchmark_beside_the_records_is_shown(results: Path) -> None:
    assert "Benchmark" not in shown(results).text
    shutil.copy(ROOT / "docs/bench-2026-11-21.json", results / "bench.json")
    page = shown(results)
    assert "Benchmark" in page.text
    assert "keras" in page.text
    (results / "bench.json").write_text('{"samples": 3}')
    assert "bench.json cannot be read" in shown(results).text


def test_where_the_page_cannot_be_made_no_old_one_is_left(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(results)]) == 0
    assert (results / "parity.html").exists()

    def missing(*_: Any) -> str:
        raise ModuleNotFoundError("No module named 'jinja2'", name="jinja2")

    monkeypatch.setattr("common.report.page.page", missing)
    capsys.readouterr()
    words = [f"{results}/", "--chapters", "scratch"]
    for removed in (" (the one that was there is out of date, and removed)", ""):
        assert main(words) == 0
        assert not (results / "parity.html").exists()
        *_, conclusion, last = capsys.readouterr().out.splitlines()
        assert "checks passed" in conclusion
        command = f"nox -s parity -- {results} --chapters scratch"
        needs = f"jinja2 and matplotlib make it: {command}"
        assert last == f"no {results}/parity.html{removed}: {needs}"
    monkeypatch.setattr(common.parity, "PAGE_NEEDS", ())
    with pytest.raises(ModuleNotFoundError):
        main([str(results)])
