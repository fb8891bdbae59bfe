"""The tables of faults say what the figures of the tests say, in the pages that have them."""

import json
import shutil
from pathlib import Path
from typing import Any

import reliability

ROOT = Path(__file__).parents[2]
MACHINE = {"date": "2031-02-03", "machine": "a processor, 2 cores"}


def fault(kind: str, number: int, framework: str, **changes: Any) -> dict[str, Any]:
    line = {"fault": kind, "number": number, "framework": framework, "lost": 0}
    return {**line, **MACHINE, **changes}


def written(folder: Path, *lines: dict[str, Any]) -> dict[str, list[str]]:
    """The lines of the pages that these faults make of the project's."""
    for name in ("reliability.md", "hosts.md"):
        shutil.copy(ROOT / "docs" / name, folder)
    (folder / "faults").write_text("\n".join(map(json.dumps, lines)))
    reliability.main([str(folder / "faults"), "--command=nox", f"--docs={folder}"])
    return {path.name: path.read_text("utf-8").splitlines() for path in folder.glob("*.md")}


def test_each_kind_of_fault_has_a_row_and_all_of_them_a_sum(tmp_path: Path) -> None:
    before = (ROOT / "docs/reliability.md").read_text(encoding="utf-8").splitlines()
    page = written(
        tmp_path,
        fault("SIGKILL at a random moment", 1190, "jax", chapter="scratch", devices=3),
        fault("SIGKILL at a random moment", 10, "jax", chapter="scratch", devices=1),
        fault("disk full at a write", 9, ""),
        fault("disk full at a write", 1, "pytorch", date="2031-02-05", lost=1),
    )["reliability.md"]
    rows = [line for line in page if line.startswith("| ") and "---" not in line]
    assert rows == [
        "| fault | made | with | lost |",
        "| SIGKILL at a random moment | 1,200 | jax | 0 |",
        "| disk full at a write | 10 | NumPy, pytorch | 1 |",
        "| all | 1,210 | NumPy, pytorch, jax | 1 |",
        "| module | on 1 device | on 3 devices |",
        "| `frameworks.jax.scratch` | 10 | 1,190 |",
    ]
    assert "a processor, 2 cores; 2031-02-03 to 2031-02-05; `nox`." in page
    assert (page[0], page[-1]) == (before[0], before[-1])


def test_the_page_on_hosts_has_the_most_seconds_of_each_moment(tmp_path: Path) -> None:
    told = [("meeting", 17.4), ("meeting", 18.6), ("end", 3.0)]
    lines = [fault("host gone", 1, "jax", moment=moment, seconds=each) for moment, each in told]
    page = written(tmp_path, *lines, fault("disk full", 1, ""))["hosts.md"]
    rows = [line for line in page if "| host gone |" in line]
    assert rows == ["| jax | host gone | 19 | – | 3 |"]
    assert "a processor, 2 cores; 2031-02-03; `nox`." in page
