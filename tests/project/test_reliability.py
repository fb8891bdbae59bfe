"""The page on faults says what the figures of the tests say."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from reliability import main, page, read

from common.base.errors import RunError

COMMAND = "nox -s faults"
ROOT = Path(__file__).parents[2]
OPTIONS = """
def pytest_addoption(parser):
    parser.addoption("--figures")
    parser.addoption("--framework")
"""


MACHINE = {"date": "2031-02-03", "machine": "a processor, 2 cores"}


def fault(kind: str, number: int, framework: str, **changes: Any) -> dict[str, Any]:
    line = {"fault": kind, "number": number, "framework": framework, "lost": 0}
    return {**line, **MACHINE, **changes}


def reader(inputs: int, seconds: float, findings: list[str], **changes: Any) -> dict[str, Any]:
    line = {"reader": "records", "inputs": inputs, "seconds": seconds, "findings": findings}
    return {**line, **MACHINE, **changes}


LINES = [
    fault("SIGKILL at a random moment", 1190, "jax", chapter="scratch", devices=3),
    fault("SIGKILL at a random moment", 4, "jax", chapter="scratch", devices=1),
    fault("SIGKILL at a random moment", 6, "mxnet", chapter="concise", devices=1),
    fault("disk full at a write", 9, ""),
    fault("disk full at a write", 1, "pytorch", date="2031-02-05", lost=1),
    reader(1_000_000, 61.4, ["a", "b"], machine="another, 4 cores"),
    reader(500, 1.0, ["c"]),
]


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_each_kind_of_fault_has_a_row_and_all_of_them_a_sum() -> None:
    text = page(LINES, COMMAND)
    assert rows(text) == [
        "| fault | made | with | lost |",
        "| --- | ---: | --- | ---: |",
        "| SIGKILL at a random moment | 1,200 | jax, mxnet | 0 |",
        "| disk full at a write | 10 | NumPy, pytorch | 1 |",
        "| all | 1,210 | NumPy, pytorch, jax, mxnet | 1 |",
        "| module | on 1 device | on 3 devices |",
        "| --- | ---: | ---: |",
        "| `frameworks.jax.scratch` | 4 | 1,190 |",
        "| `frameworks.mxnet.concise` | 6 | 0 |",
        "| reader | inputs | seconds | findings |",
        "| --- | ---: | ---: | ---: |",
        "| records | 1,000,500 | 62 | 3 |",
    ]
    assert "\na processor, 2 cores; 2031-02-03 to 2031-02-05; `nox -s faults`.\n" in text
    assert "\na processor, 2 cores; another, 4 cores; 2031-02-03; `nox -s fuzz`.\n" in text


def test_without_readers_there_is_no_word_of_them() -> None:
    assert "reader" not in page(LINES[:1], COMMAND)
    assert "; 2031-02-03; `" in page(LINES[:1], COMMAND)


def test_without_new_figures_of_readers_the_earlier_ones_stay() -> None:
    faults = [line for line in LINES if "fault" in line]
    assert page(faults, COMMAND, page(LINES, "another")) == page(LINES, COMMAND)
    assert "reader" not in page(faults, COMMAND, page(faults, COMMAND))


TESTS = """
def test_one(figures):
    figures("clock set back", 3, chapter="scratch")
    figures("clock set back", 0)

def test_another(figures):
    figures("clock set back", 4)
    assert not "as it should be"

def test_a_third(figures):
    assert not "before it has made any"
"""


def test_what_tests_count_comes_to_the_page(tmp_path: Path) -> None:
    path, out, test = tmp_path / "figures", tmp_path / "page.md", tmp_path / "test_faults.py"
    test.write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", f"--confcutdir={tmp_path}", "-pfigures"]
    options = ["-p", "plain_options", f"--figures={path}", str(test)]
    (tmp_path / "plain_options.py").write_text(OPTIONS)
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests/support'}:{tmp_path}"}
    ran = subprocess.run([*command, *options], env=environment, cwd=tmp_path, check=False)
    assert ran.returncode == 1
    assert main([str(path), f"--command={COMMAND}", f"--out={out}"]) == 0
    assert "| clock set back | 7 | NumPy | 4 |" in out.read_text()
    assert "| test_a_third | 1 | NumPy | 1 |" in out.read_text()


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
