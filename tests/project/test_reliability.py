"""The page on faults says what the figures of the tests say."""

import json
from pathlib import Path
from typing import Any

import pytest
from figures import Figures
from reliability import main, page, read

from common.base.errors import RunError

COMMAND = "nox -s faults"


def fault(kind: str, number: int, framework: str, **changes: Any) -> dict[str, Any]:
    machine = {"date": "2031-02-03", "machine": "a processor, 2 cores"}
    return {"fault": kind, "number": number, "framework": framework, **machine, **changes}


LINES = [
    fault("SIGKILL at a random moment", 1200, "jax"),
    fault("disk full at a write", 9, ""),
    fault("disk full at a write", 1, "pytorch", date="2031-02-05"),
    {"reader": "records", "inputs": 1_000_000, "seconds": 61.4, "findings": 2},
    {"reader": "records", "inputs": 500, "seconds": 1.0, "findings": 1},
]


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_each_kind_of_fault_has_a_row_and_all_of_them_a_sum() -> None:
    text = page(LINES, COMMAND)
    assert rows(text) == [
        "| fault | made | with | lost |",
        "| --- | ---: | --- | ---: |",
        "| SIGKILL at a random moment | 1,200 | jax | 0 |",
        "| disk full at a write | 10 | NumPy, pytorch | 0 |",
        "| all | 1,210 | NumPy, pytorch, jax | 0 |",
        "| reader | inputs | seconds | findings |",
        "| --- | ---: | ---: | ---: |",
        "| records | 1,000,500 | 62 | 3 |",
    ]
    assert "\na processor, 2 cores; 2031-02-03 to 2031-02-05; `nox -s faults`.\n" in text


def test_without_readers_there_is_no_word_of_them() -> None:
    assert "reader" not in page(LINES[:1], COMMAND)
    assert "; 2031-02-03; `" in page(LINES[:1], COMMAND)


def test_what_tests_count_comes_to_the_page(tmp_path: Path) -> None:
    path, out = tmp_path / "figures", tmp_path / "page.md"
    for framework, number in (("mxnet", 3), (None, 4), ("mxnet", 0)):
        Figures(path, framework)("clock set back", number, chapter="scratch")
    assert main([str(path), f"--command={COMMAND}", f"--out={out}"]) == 0
    assert "| clock set back | 7 | NumPy, mxnet | 0 |" in out.read_text()
    Figures(None, None)("clock set back")
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("content", ["{", "{}", "", json.dumps(LINES[-1])])
def test_what_holds_no_figures_makes_no_page(tmp_path: Path, content: str) -> None:
    path, out = tmp_path / "figures", tmp_path / "page.md"
    path.write_text(content)
    with pytest.raises(RunError, match=r"cannot be read|no figure|no faults"):
        main([str(path), f"--command={COMMAND}", f"--out={out}"])
    assert not out.exists()


def test_files_are_read_in_a_row(tmp_path: Path) -> None:
    for number, line in enumerate(LINES):
        (tmp_path / str(number)).write_text(json.dumps(line))
    assert read(tmp_path / str(number) for number in range(len(LINES))) == LINES
