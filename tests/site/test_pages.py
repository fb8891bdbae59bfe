"""A chapter's page: what frameworks share is there once, what differs in tabs; links lead to pages.

What of a notebook cannot be used is named, and an earlier site stays until a new one is whole.
"""

from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_output

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from notebooks import site
from notebooks.text import chapter, notebook as files
from notebooks.text.notebook import Notebook, code_digest, notebook, outputs_digest, write
from notebooks.text.sources import ROOT
from notebooks.web.pages import Notebooks, escaped, merged, page
from notebooks.web.relink import relinked

CHAPTERS = ROOT / "notebooks/chapters"
NAME = "multiple-gpus"
TEXT = """# A title

An introduction, and a [link](multiple-gpus-concise.md#resnet-18).

## First part

Said to all.

```{cell}
print("the same")
```

:::{only} jax mxnet
Said to two.
:::

```{cell}
print("{framework}")
```

## Second part

```{picture} three_splits()
```

```{solution} common/parallel/shards.py shard_bounds
```

```{cell}
print("at the end")
```
"""


def stream(text: str, name: str = "stdout") -> Any:
    return new_output("stream", text=text, name=name)


def ran(framework: str, **outputs: list[Any]) -> Notebook:
    """The notebook of the chapter above, with these outputs by the ends of cells' ids."""
    made = notebook(NAME, framework)
    for cell in made.cells:
        for end, some in {"setup": [stream(f"{framework} 1.0\n2 cores\n")], **outputs}.items():
            if cell.id.replace("-", "_").endswith(end):
                cell.outputs = some
    made.metadata["executed"] = {"code": code_digest(made), "outputs": outputs_digest(made)}
    return made


@pytest.fixture
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


@pytest.mark.usefixtures("text")
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


@pytest.mark.usefixtures("text")
def test_a_cell_whose_outputs_differ_differs() -> None:
    found: Notebooks = {
        each: ran(each, second_part_4=[stream(f"by {each}\n")]) for each in FRAMEWORKS
    }
    _, _, last = tab_sets(page(NAME, found))
    shown = "```{{code-block}} text\n:class: output\n\nby {}\n```"
    assert all(shown.format(each) in last[each] for each in FRAMEWORKS)


@pytest.mark.usefixtures("text")
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


@pytest.mark.parametrize(
    ("written", "folder", "at", "linked"),
    [
        ("[a](parity.md)", CHAPTERS, f"chapters/{NAME}", "parity.md"),
        ("[a](../../docs/seeds.md)", CHAPTERS, "chapters/parity", "../seeds.md"),
        ("[a\nb](../README.md#go-on)", ROOT / "docs", "seeds", "index.md#go-on"),
        ("[a](../LICENSE)", ROOT / "docs", "results", "sources/LICENSE.md"),
        ("[a](common/grid.py)", ROOT, "sources/CONTRIBUTING.md", "common/grid.py.md"),
        ("[a](https://example.org/b.md)", ROOT, "index", "https://example.org/b.md"),
    ],
)  # fmt: skip
def test_links_lead_to_pages(written: str, folder: Path, at: str, linked: str) -> None:
    text = f"{written}\n\n```\n{written}\n```\n"
    assert relinked(text, folder, at) == text.replace(written.partition("(")[2], f"{linked})", 1)


@pytest.mark.usefixtures("text")
def test_a_missing_or_stale_notebook_is_an_error_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    place = tmp_path / "jax" / f"{NAME}.ipynb"
    with pytest.raises(RunError, match=rf"{place}: it is missing; .*notebooks.build"):
        site.notebook_of(NAME, "jax")
    place.parent.mkdir()
    write(place, ran("jax"))
    assert site.notebook_of(NAME, "jax").cells
    write(place, ran("jax", first_part_2=[stream("no\n", "stderr")]))
    with pytest.raises(RunError, match="standard error"):
        site.notebook_of(NAME, "jax")
    place.write_bytes(b'{"cells": 3}')
    with pytest.raises(RunError, match="is no notebook"):
        site.notebook_of(NAME, "jax")


def test_a_new_site_takes_the_place_of_an_earlier_one_once_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = tmp_path / "site"
    earlier.mkdir()
    (earlier / "index.html").write_text("earlier")
    assert site.main(["--out", str(earlier)]) == 2  # files of others stay
    assert "is no earlier site" in capsys.readouterr().err
    (earlier / site.MARK).touch()
    for name in ("write_chapters", "write_sources"):
        monkeypatch.setattr(site, name, lambda: None)
    # With -W, any warning makes it fail, also that of a link that leads nowhere.
    monkeypatch.setattr("sphinx.cmd.build.build_main", lambda flags: "-W" in flags)
    assert site.main(["--out", str(earlier)]) == 1
    assert (earlier / "index.html").read_text() == "earlier"

    def build_main(flags: list[str]) -> int:
        Path(flags[-1]).mkdir()
        Path(flags[-1], "index.html").write_text("<p>new</p>")
        return 0

    monkeypatch.setattr("sphinx.cmd.build.build_main", build_main)
    assert site.main(["--out", str(earlier)]) == 0
    assert (earlier / "index.html").read_text() == "<p>new</p>"
    assert list(tmp_path.iterdir()) == [earlier]
