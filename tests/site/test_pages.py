"""A chapter's page: what frameworks share is there once, what differs is in tabs, outputs below."""

from pathlib import Path
from typing import Any

import pytest
from small_chapter import NAME, TEXT, ran, shown, stream

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from notebooks.text import chapter
from notebooks.web.pages import Notebooks, escaped, merged, page


@pytest.fixture(autouse=True)
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chapter, "TEXTS", tmp_path)
    (tmp_path / f"{NAME}.md").write_text(TEXT, encoding="utf-8")


def made(**outputs: list[Any]) -> str:
    notebooks: Notebooks = {each: ran(each, **outputs) for each in FRAMEWORKS}
    return page(NAME, notebooks)


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


def test_what_frameworks_share_is_there_once() -> None:
    text = made(first_part_2=[stream("the same\n")])
    for each in ("# A title", "Said to all.", 'print("the same")', "three_splits()"):
        assert text.count(each) == 1, each
    _, differs = tab_sets(text)
    assert 'print("the same")' not in "".join(differs.values())


def test_what_differs_is_in_tabs_in_each_frameworks_order() -> None:
    start, differs = tab_sets(made())
    assert list(start) == list(differs) == list(FRAMEWORKS)
    assert all(f"Run with {each} 1.0\\\n2 cores" in start[each] for each in FRAMEWORKS)
    assert all(f'print("{each}")' in tab for each, tab in differs.items())
    assert ["Said to two." in tab for tab in differs.values()] == [False, False, True, True]
    assert differs["jax"].index("Said to two.") < differs["jax"].index('print("jax")')


def test_a_cell_whose_outputs_differ_differs() -> None:
    found: Notebooks = {
        each: ran(each, second_part_4=[stream(f"by {each}\n")]) for each in FRAMEWORKS
    }
    _, _, last = tab_sets(page(NAME, found))
    assert all(
        f"```{{code-block}} text\n:class: output\n\nby {each}\n```" in last[each]
        for each in FRAMEWORKS
    )
    assert all(tab.count('print("at the end")') == 1 for tab in last.values())


def test_only_what_some_frameworks_have_makes_tabs_for_these(tmp_path: Path) -> None:
    text = TEXT.replace('print("{framework}")', "pass")
    (tmp_path / f"{NAME}.md").write_text(text, encoding="utf-8")
    assert list(tab_sets(made())[1]) == ["jax", "mxnet"]


def test_the_code_that_finds_the_project_is_not_shown() -> None:
    assert "sys.path" not in made()
    assert made().count("{download}`Download the notebook <jax-multiple-gpus.ipynb>`") == 1


def test_a_solution_is_folded_without_its_neighbours() -> None:
    before, _, rest = made().partition(":::::{dropdown} Solution")
    folded, _, after = rest.partition("\n:::::\n")
    assert "def shard_bounds" in folded
    assert "def shard_bounds" not in before + after
    assert 'print("at the end")' in after


def test_pictures_stay_pictures_and_come_before_other_kinds() -> None:
    drawn = shown(image_svg="<svg>\n\n<path/></svg>", text_plain="<SVG object>")
    text = made(first_part_2=[stream("a\n"), stream("b\n"), drawn])
    assert "```{code-block} text\n:class: output\n\na\nb\n```" in text
    assert '```{raw} html\n<div class="output">\n<svg>\n<path/></svg>\n</div>\n```' in text
    assert "SVG object" not in text


def test_colours_of_a_terminal_and_fences_in_outputs() -> None:
    text = made(first_part_2=[stream("\x1b[1;31mred\x1b[0m\n```\n")])
    assert "````{code-block} text\n:class: output\n\nred\n```\n````" in text


def test_what_cannot_be_shown_is_an_error() -> None:
    with pytest.raises(RunError, match="cell first-part-2 shows image/png, which the site cannot"):
        made(first_part_2=[shown(image_png="AAAA")])


def test_orders_are_merged() -> None:
    assert merged([["a", "b", "d"], ["a", "c", "d"], ["a", "d", "e"]]) == ["a", "c", "b", "d", "e"]


def test_text_of_a_machine_is_no_markup() -> None:
    assert escaped("[cpu_0] <a> $x$ *") == r"\[cpu\_0\] \<a\> \$x\$ \*"
