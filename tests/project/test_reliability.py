"""The pages on faults say what the figures of the tests say."""

import json
from pathlib import Path
from typing import Any

import hosts_seconds
from reliability import page

COMMAND = "nox -s faults"
ROOT = Path(__file__).parents[2]
MACHINE = {"date": "2031-02-03", "machine": "a processor, 2 cores"}


def fault(kind: str, number: int, framework: str, **changes: Any) -> dict[str, Any]:
    line = {"fault": kind, "number": number, "framework": framework, "lost": 0}
    return {**line, **MACHINE, **changes}


def test_each_kind_of_fault_has_a_row_and_all_of_them_a_sum() -> None:
    reader = {"reader": "records", "seconds": 61.4, "findings": ["a", "b"], **MACHINE}
    lines = [
        fault("SIGKILL at a random moment", 1190, "jax", chapter="scratch", devices=3),
        fault("SIGKILL at a random moment", 10, "jax", chapter="scratch", devices=1),
        fault("disk full at a write", 9, ""),
        fault("disk full at a write", 1, "pytorch", date="2031-02-05", lost=1),
    ]
    text = page([*lines, {**reader, "inputs": 1_000_000}], COMMAND)
    assert [line for line in text.splitlines() if line.startswith("| ") and "---" not in line] == [
        "| fault | made | with | lost |",
        "| SIGKILL at a random moment | 1,200 | jax | 0 |",
        "| disk full at a write | 10 | NumPy, pytorch | 1 |",
        "| all | 1,210 | NumPy, pytorch, jax | 1 |",
        "| module | on 1 device | on 3 devices |",
        "| `frameworks.jax.scratch` | 10 | 1,190 |",
        "| reader | inputs | seconds | findings |",
        "| records | 1,000,000 | 61 | 2 |",
    ]
    assert "\na processor, 2 cores; 2031-02-03 to 2031-02-05; `nox -s faults`.\n" in text
    assert page(lines, COMMAND, text) == text  # what was known of readers stays


def test_the_page_on_hosts_has_the_most_seconds_of_each_moment(tmp_path: Path) -> None:
    begin, end = hosts_seconds.BEGIN, hosts_seconds.END
    text = (ROOT / hosts_seconds.PAGE).read_text(encoding="utf-8")
    assert text.index(begin) < text.index(end)
    out, figures = tmp_path / "page.md", tmp_path / "faults.jsonl"
    out.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    told = [("meeting", 17.4), ("meeting", 18.6), ("end", 3.0)]
    lines = [fault("host gone", 1, "jax", moment=moment, seconds=each) for moment, each in told]
    figures.write_text("\n".join(map(json.dumps, [*lines, fault("disk full", 1, "")])))
    assert hosts_seconds.main([str(figures), "--command=nox", f"--out={out}"]) == 0
    rows = out.read_text().splitlines()
    assert "| jax | host gone | 19 | – | 3 |" in rows
    assert "a processor, 2 cores; 2031-02-03; `nox`." in rows
    assert "old" not in rows
