"""A chapter's page: what frameworks share is there once, what differs is in tabs, outputs below."""

from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_output
from small_chapter import NAME, TEXT, ran, stream

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from notebooks.text import chapter
from notebooks.web.pages import Notebooks, escaped, merged, page


@pytest.fixture(autouse=True)
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chapter, "TEXTS", tmp_path)
    (tmp_path / f"{NAME}.md").write_text(TEXT, encoding="utf-8")


def made(**outputs: list[Any]) -> str:
    return page(NAME, {each: ran(each, **outputs) for each in FRAMEWORKS})


def tab_sets(text: str) -> list[dict[str, str]]:
    """What each set of tabs has for each framework."""
    sets = text.split(":::::::{tab-set}\n")[1:]
    return [
        {
            tab.split("\n")[1].removeprefix(":sync: "): tab
            for tab in each.split("\n:::::::\n")[0].split("::::::{tab-item} ")[1:]
        }
        for each in sets
    ]


def test_what_frameworks_share_is_there_once_and_what_differs_in_tabs() -> None:
    text = made(first_part_2=[stream("the same\n")])
    for each in ("# A title", "Said to all.", 'print("the same")', "three_splits()"):
        assert text.count(each) == 1, each
    assert "sys.path" not in text
    start, differs = tab_sets(text)
    assert list(start) == list(differs) == list(FRAMEWORKS)
    assert 'print("the same")' not in "".join(differs.values())
    assert all(f"Run with {each} 1.0\\\n2 cores" in start[each] for each in FRAMEWORKS)
    assert all(f'print("{each}")' in tab for each, tab in differs.items())
    assert ["Said to two." in tab for tab in differs.values()] == [False, False, True, True]
    before, _, rest = text.partition(":::::{dropdown} Solution")
    folded, _, after = rest.partition("\n:::::\n")
    assert "def shard_bounds" in folded
    assert "def shard_bounds" not in before + after


def test_a_cell_whose_outputs_differ_differs() -> None:
    found: Notebooks = {
        each: ran(each, second_part_4=[stream(f"by {each}\n")]) for each in FRAMEWORKS
    }
    _, _, last = tab_sets(page(NAME, found))
    shown = "```{{code-block}} text\n:class: output\n\nby {}\n```"
    assert all(shown.format(each) in last[each] for each in FRAMEWORKS)


def test_outputs_stay_what_they_are() -> None:
    kinds = {"image/svg+xml": "<svg>\n\n<path/></svg>", "text/plain": "<SVG object>"}
    drawn = new_output("display_data", kinds)
    text = made(first_part_2=[stream("a\n"), stream("\x1b[1;31mb\x1b[0m\n```\n"), drawn])
    assert "````{code-block} text\n:class: output\n\na\nb\n```\n````" in text
    assert '```{raw} html\n<div class="output">\n<svg>\n<path/></svg>\n</div>\n```' in text
    assert "SVG object" not in text
    with pytest.raises(RunError, match="cell first-part-2 shows image/png, which the site cannot"):
        made(first_part_2=[new_output("display_data", {"image/png": "AAAA"})])


def test_orders_are_merged_and_text_of_a_machine_is_no_markup() -> None:
    assert merged([["a", "b", "d"], ["a", "c", "d"], ["a", "d", "e"]]) == ["a", "c", "b", "d", "e"]
    assert escaped("[cpu_0] <a> $x$ *") == r"\[cpu\_0\] \<a\> \$x\$ \*"
