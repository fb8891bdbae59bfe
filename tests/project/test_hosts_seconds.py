"""The table of seconds says what the figures of faults in runs over hosts say."""

import json
from pathlib import Path
from typing import Any

import pytest
from hosts_seconds import BEGIN, END, PAGE, main

from common.base.errors import RunError

ROOT = Path(__file__).parents[2]


def line(framework: str, fault: str, moment: str, seconds: float) -> dict[str, Any]:
    shared = {"number": 1, "lost": 0, "date": "2031-02-03", "machine": "a processor, 2 cores"}
    return {"framework": framework, "fault": fault, "moment": moment, "seconds": seconds, **shared}


LINES = [
    line("jax", "host gone", "meeting", 17.4),
    line("jax", "host gone", "meeting", 18.6),
    line("jax", "host gone", "end", 3.0),
    line("pytorch", "process over hosts killed", "middle", 0.4),
    {"fault": "disk full at a write", "number": 1},
]


def written(page: Path, lines: list[dict[str, Any]]) -> str:
    figures = page.with_name("faults.jsonl")
    figures.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    assert main([str(figures), "--command=nox", f"--out={page}"]) == 0
    return page.read_text()


def test_the_table_has_the_most_seconds_of_each_moment(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    text = written(page, LINES)
    assert (
        text
        == f"""before
{BEGIN}

| framework | lost | seconds, meeting | seconds, middle | seconds, end |
| --- | --- | ---: | ---: | ---: |
| pytorch | killed | – | 0 | – |
| jax | host gone | 19 | – | 3 |

a processor, 2 cores; 2031-02-03; `nox`.

{END}
after
"""
    )
    assert written(page, LINES) == text
    assert written(page, LINES[-1:]) == text


def test_a_page_has_to_have_a_place_for_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(BEGIN)
    with pytest.raises(RunError, match="no lines"):
        written(page, LINES)


def test_the_page_has_a_place_for_it() -> None:
    text = (ROOT / PAGE).read_text()
    assert text.index(BEGIN) < text.index(END)
