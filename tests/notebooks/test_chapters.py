"""Chapters: every listing is a text of the sources; what cannot be read says where it stands."""

import ast
import builtins
import re
from collections.abc import Callable
from pathlib import Path
from symtable import Symbol, SymbolTable, symtable

import pytest

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from notebooks.text import chapter
from notebooks.text.chapter import CHAPTERS, SHARED, Cell, cells

EVERY = [*((name, framework) for name in CHAPTERS for framework in FRAMEWORKS), (SHARED, None)]

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a chapter of its own, and returns its name."""
    monkeypatch.setattr(chapter, "TEXTS", tmp_path)
    monkeypatch.setitem(CHAPTERS, "own", "scratch")

    def written(text: str) -> str:
        (tmp_path / "own.md").write_text(text, encoding="utf-8")
        return "own"

    return written


def sources() -> str:
    """Everything that a listing can be cut from."""
    files = [path for room in ("common", "frameworks", "notebooks") for path in glob(room)]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def glob(room: str) -> list[Path]:
    return sorted((Path(__file__).parents[2] / room).rglob("*.py"))


@pytest.mark.parametrize(("name", "backend"), EVERY)
def test_a_chapter_has_cells_that_one_can_run_and_find_again(
    name: str, backend: str | None
) -> None:
    found = cells(name, backend)
    ids = [cell.id for cell in found]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", each) for each in ids)
    assert sum(cell.kind == "code" for cell in found) > 3
    for cell in found:
        if cell.kind == "code":
            ast.parse(cell.text)
        if cell.kind == "prose":
            assert "```" not in cell.text
            assert not re.search(r"^:::|\{(only|cell|listing|picture)\}", cell.text, re.MULTILINE)


@pytest.mark.parametrize(("name", "backend"), EVERY)
def test_every_name_is_known_where_it_is_used(name: str, backend: str | None) -> None:
    known = set(dir(builtins)) | {"show", "__name__"}
    for cell in cells(name, backend):
        if cell.kind == "code":
            table = symtable(cell.text, cell.id, "exec")
            known |= {each.get_name() for each in table.get_symbols() if bound(each)}
            assert used(table) - known == set(), cell.id


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_cell_takes_the_name_that_mxnet_has_for_its_numpy(name: str) -> None:
    written = re.findall(r"^```{cell}\n(.*?)^```$", own_cells(name), re.DOTALL | re.MULTILINE)
    assert len(written) > 3
    assert not any(re.search(r"\bnp\b", code) for code in written)


def used(table: SymbolTable) -> set[str]:
    """The names that code, or a function in it, takes from outside."""
    own = {
        each.get_name()
        for each in table.get_symbols()
        if each.is_global() or (table.get_type() == "module" and not bound(each))
    }
    return own.union(*map(used, table.get_children()))


def bound(symbol: Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_same_place_has_the_same_id_in_every_framework(name: str) -> None:
    every = {framework: cells(name, framework) for framework in FRAMEWORKS}
    prose = [
        {cell.id: cell.text for cell in found if cell.kind == "prose"} for found in every.values()
    ]
    first, *others = prose
    shared = [each for each in first if all(each in other for other in others)]
    assert len(shared) > 10
    assert all(first[each] == other[each] for each in shared for other in others)


@pytest.mark.parametrize(("name", "backend"), EVERY)
def test_a_listing_is_what_the_sources_say(name: str, backend: str | None) -> None:
    text = sources()
    functions = [
        segment
        for cell in cells(name, backend)
        if cell.kind == "code"
        for node in ast.parse(cell.text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and (segment := ast.get_source_segment(cell.text, node))
        and '"""' in segment
    ]
    listed = [segment for segment in functions if segment in text]
    written = [segment for segment in functions if segment not in text]
    assert len(listed) > 3 or name == SHARED
    assert all(f"{segment}\n" in own_cells(name) for segment in written)


def own_cells(name: str) -> str:
    """The chapter's text: what it defines itself is for the reader to play with."""
    return (chapter.TEXTS / f"{name}.md").read_text(encoding="utf-8")


def only(found: list[Cell], kind: str) -> list[str]:
    return [cell.text for cell in found if cell.kind == kind and cell.id != "setup"]


def test_a_listing_brings_the_imports_that_none_before_it_has_brought(write: Write) -> None:
    name = write(
        "# T\n\n```{listing} scratch.py get_params\n```\n\n```{listing} scratch.py loss\n```"
    )
    first, second = only(cells(name, "pytorch"), "code")
    assert "import torch\n" in first.split("def ")[0]
    assert "Params = dict[str, Tensor]" in first
    assert "from torch.nn import functional as F" in second
    assert "import torch\n" not in second
    assert "Tensor" not in second.split("def ")[0]  # it is known already


def test_a_listing_of_another_file_is_what_later_listings_use(write: Write) -> None:
    name = write(
        "# T\n\n```{listing} kernels.py scatter\n```\n\n```{listing} scratch.py split_batch\n```"
    )
    _, second = only(cells(name, "pytorch"), "code")
    assert "scatter(X, devices)" in second
    assert "import scatter" not in second


def test_what_is_said_to_some_frameworks_is_not_said_to_others(write: Write) -> None:
    text = "# T\n\n:::{only} jax mxnet\nhere\n\n```{cell}\nx = '{framework}'\n```\n:::\n\nall"
    name = write(text)
    assert only(cells(name, "jax"), "prose") == ["# T", "here", "all"]
    assert only(cells(name, "jax"), "code") == ["x = 'jax'"]
    assert only(cells(name, "pytorch"), "prose") == ["# T", "all"]
    assert only(cells(name, "pytorch"), "code") == []
    assert cells(name, "jax")[-1].id == cells(name, "pytorch")[-1].id


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# T\n\n```python\nx = 1\n```", "own.md:3: code that is not run"),
        ("# T\n\n```{listing} scratch.py lenet", "own.md:3: the block has no end"),
        ("# T\n\n```{listings} scratch.py lenet\n```", "own.md:3: there is no block 'listings'"),
        ("# T\n\n:::{only} pytroch\nx\n:::", "own.md:3: only pytroch: no such framework"),
        ("# T\n\n:::{only} jax\nx\n\n```{cel}\n```\n:::", "own.md:6: there is no block 'cel'"),
        ("# T\n\n```{listing} scratch.py lenett\n```", "scratch.py defines no 'lenett'"),
        ("# T\n\n```{listing} scrach.py lenet\n```", "scrach.py"),
        ("# T\n\n```{listing} scratch.py\n```", "a listing of scratch.py names nothing"),
        ("# T\n\n```{listing}\n```", "own.md:3: a block 'listing' has words beside its name"),
        ("# T\n\n```{picture} f()\nx\n```", "own.md:3: a block 'picture' has words beside"),
        ("# T\n\n```{cell} x\n```", "own.md:3: a block 'cell' has lines below"),
        ("# T\n\n~~~python\nx = 1\n~~~", "own.md:3: code that is not run"),
        ("# T\n\n  ```python\nx = 1\n```", "own.md:3: code that is not run"),
        ("# T\n\n:::{only} jax\n## H\n:::", "own.md:3: only some frameworks would have"),
        ("# T\n\n## A\n\n## A\n", "own.md: two headings are 'A'"),
        ("", "own.md is empty"),
    ],
)
def test_a_text_that_cannot_be_read_says_where(write: Write, text: str, complaint: str) -> None:
    name = write(text)
    with pytest.raises(RunError, match=re.escape(complaint)):
        cells(name, "jax")


def test_a_chapter_that_is_missing_says_so() -> None:
    with pytest.raises(RunError, match="there is no chapter multiple-tpus"):
        cells("multiple-tpus", "jax")


@pytest.mark.parametrize(("name", "backend"), EVERY)
def test_no_line_of_code_is_wider_than_the_page(name: str, backend: str | None) -> None:
    code = [cell.text for cell in cells(name, backend) if cell.kind == "code"]
    assert [line for text in code for line in text.splitlines() if len(line) > 100] == []
