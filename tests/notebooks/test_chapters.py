"""Chapters: listings bring their imports; a text that cannot be read says where."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from common.base.errors import RunError
from notebooks.text import chapter
from notebooks.text.chapter import CHAPTERS, Cell, cells
from notebooks.text.sources import Listings


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a chapter that is called "own"."""
    monkeypatch.setattr(chapter, "TEXTS", tmp_path)
    return tmp_path / "own.md"


def texts(cells_read: Iterable[Cell], kind: str) -> list[str]:
    return [cell.text for cell in cells_read if cell.kind == kind]


def test_a_listing_brings_the_imports_that_none_before_it_has_brought(own: Path) -> None:
    listings = ["scratch.py get_params", "scratch.py loss", "kernels.py scatter"]
    listings += ["scratch.py split_batch"]
    own.write_text("# T\n\n" + "\n\n".join(f"```{{listing}} {x}\n```" for x in listings))
    first, second, _, last = texts(cells("own", "pytorch"), "listing")
    assert "import torch\n" in first.split("def ")[0]
    assert "Params = dict[str, Tensor]" in first
    assert "from torch.nn import functional as F" in second
    assert "import torch\n" not in second
    assert "Tensor" not in second.split("def ")[0]  # it is known already
    assert "scatter(X, devices)" in last
    assert "import scatter" not in last  # the listing before is what it calls


def test_a_listing_brings_two_names_that_one_line_binds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebooks.text.sources.ROOT", tmp_path)
    text = "A, B = 1, 2\n\n\ndef both():\n    return A + B"
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    assert Listings().cell(tmp_path / "own.py", ["both"]) == text


def test_no_cell_takes_the_name_that_mxnet_has_for_its_numpy() -> None:
    for name in CHAPTERS:
        text = (chapter.TEXTS / f"{name}.md").read_text(encoding="utf-8")
        written = re.findall(r"^```{cell}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        assert written
        assert not any(re.search(r"\bnp\b", code) for code in written)


def test_what_is_said_to_some_frameworks_is_not_said_to_others(own: Path) -> None:
    code = "```{cell}\nx = '{framework}'\n```"
    own.write_text(f"# T\n\n:::{{only}} jax mxnet\nhere\n\n{code}\n:::\n\nall")
    jax, pytorch = (list(cells("own", framework)) for framework in ("jax", "pytorch"))
    assert texts(jax, "prose") == ["# T", "here", "all"]
    assert texts(jax, "cell") == ["x = 'jax'"]
    assert texts(pytorch, "prose") == ["# T", "all"]
    assert texts(pytorch, "cell") == []
    assert [jax[0].id, jax[-1].id] == [cell.id for cell in pytorch]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\nx = 1\n```", "own.md: ```python: code that is not run"),
        ("```{listing} scratch.py lenet", "own.md: ```{listing} scratch.py lenet: code that is"),
        (":::{only} pytroch\nx\n:::", "own.md: only pytroch: no such framework"),
        (":::{only} jax\nx\n\n```{cel}\n```\n:::", "own.md: there is no block 'cel'"),
        ("```{listing} scratch.py lenett\n```", "scratch.py defines no 'lenett'"),
    ],
)
def test_a_text_that_cannot_be_read_says_where(own: Path, text: str, complaint: str) -> None:
    own.write_text(f"# T\n\n{text}")
    with pytest.raises(RunError, match=re.escape(complaint)):
        list(cells("own", "jax"))
