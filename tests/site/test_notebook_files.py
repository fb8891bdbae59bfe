"""The committed notebooks: they are as text and listings say, and one changed word is seen."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest

from common.base.errors import RunError
from notebooks.build import everything
from notebooks.text.notebook import failure, outputs_digest, path_of, read

ROOT = Path(__file__).parents[2]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what notebooks are made of."""
    folder = tmp_path_factory.mktemp("clone")
    for room in ("common", "frameworks", "notebooks", "docs"):
        ignored = shutil.ignore_patterns("__pycache__", "chapters.md", "sources")
        shutil.copytree(ROOT / room, folder / room, ignore=ignored)
    return folder


@pytest.fixture
def clone(original: Path) -> Iterator[Path]:
    """The same; what a test changes in it is put back."""
    kept = {path: path.read_bytes() for path in original.rglob("*") if path.is_file()}
    yield original
    for path in set(original.rglob("*")) - kept.keys():
        if path.is_file():
            path.unlink()
    for path, content in kept.items():
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)


def build(folder: Path, *flags: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "notebooks.build", *flags]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_they_are_what_text_and_listings_say(clone: Path) -> None:
    done = build(clone, "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"all {len(everything())} notebooks are as their text and listings say\n"
    assert len(everything()) == 13  # 3 chapters in 4 frameworks, and the one that all share


def test_a_changed_word_of_prose_is_seen_in_every_framework(clone: Path) -> None:
    change(clone / "notebooks/chapters/multiple-gpus.md", "You need no GPU.", "You need a GPU.")
    done = build(clone, "--check")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    for framework in ("pytorch", "tensorflow", "jax", "mxnet"):
        assert f"notebooks/{framework}/multiple-gpus.ipynb: the cell " in line
    assert "concise" not in line
    assert "`python -m notebooks.build`" in line


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        (
            "frameworks/jax/scratch.py",
            'The logits (n, 10) of images `X` (n, 1, 28, 28)."""\n    h1',
            'The logits (n, 10) of pictures `X` (n, 1, 28, 28)."""\n    h1',
            ["notebooks/jax/multiple-gpus.ipynb"],
        ),
        (
            "frameworks/mxnet/wrappers.py",
            "update_on_kvstore=False",
            "update_on_kvstore=True",
            ["notebooks/mxnet/multiple-gpus-concise.ipynb"],
        ),
    ],
)
def test_a_changed_word_of_a_listed_function_is_seen(
    clone: Path, file: str, old: str, new: str, stale: list[str]
) -> None:
    change(clone / file, old, new)
    done = build(clone, "--check")
    assert done.returncode == 1
    assert re.findall(r"notebooks/\S+\.ipynb", done.stderr) == stale


def test_a_changed_picture_is_seen(clone: Path) -> None:
    change(clone / "notebooks/drawing/pictures.py", "minibatch of ", "a minibatch of ")
    done = build(clone, "--check")
    assert done.returncode == 1
    assert "jax/multiple-gpus.ipynb: the cell data-parallelism-2 has another picture" in done.stderr
    assert "5 more" not in done.stderr
    assert "1 more" in done.stderr  # docs/data-parallelism.svg, beside four notebooks


def test_new_headings_and_places_keep_the_outputs(clone: Path) -> None:
    path = clone / "notebooks/jax/multiple-gpus.ipynb"
    before = read(path)
    chapter = clone / "notebooks/chapters/multiple-gpus.md"
    change(chapter, "## One step", "## A single step")
    change(
        chapter,
        "```{cell}\nX, y = lesson.minibatch(5)",
        "Five:\n\n```{cell}\nX, y = lesson.minibatch(5)",
    )
    assert build(clone).returncode == 0
    after = read(path)
    assert outputs_digest(after) == outputs_digest(before)
    assert [each.id for each in after.cells] != [each.id for each in before.cells]
    assert build(clone, "--check").returncode == 0


def test_new_prose_keeps_the_outputs_and_new_code_does_not(clone: Path) -> None:
    path = clone / "notebooks/jax/multiple-gpus.ipynb"
    change(clone / "notebooks/chapters/multiple-gpus.md", "You need no GPU.", "No GPU is needed.")
    before = read(path)
    assert build(clone).returncode == 0
    after = read(path)
    assert [each.get("outputs") for each in after.cells] == [
        each.get("outputs") for each in before.cells
    ]
    assert build(clone, "--check").returncode == 0
    change(clone / "frameworks/jax/scratch.py", "The logits (n, 10) of", "Logits (n, 10) of")
    assert build(clone).returncode == 0
    left = [output for cell in read(path).cells for output in cell.get("outputs", [])]
    assert {output.output_type for output in left} == {"display_data"}  # pictures need no run
    done = build(clone, "--check")
    assert done.returncode == 1
    assert "notebooks/jax/multiple-gpus.ipynb: it has no outputs" in done.stderr


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"cells": 3}', b"\xff"])
def test_what_is_no_notebook_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "chapter.ipynb"
    path.write_bytes(content)
    with pytest.raises(RunError, match=r"chapter\.ipynb is no notebook"):
        read(path)


def test_what_is_no_notebook_is_named(clone: Path) -> None:
    (clone / "notebooks/jax/multiple-gpus.ipynb").write_bytes(b"{")
    for flags in ((), ("--check",)):
        done = build(clone, *flags)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert "jax/multiple-gpus.ipynb is no notebook" in line


@pytest.mark.parametrize(("name", "of"), everything())
def test_committed_outputs_say_where_they_come_from(name: str, of: str | None) -> None:
    found = read(path_of(name, of))
    assert set(found.metadata["executed"]) == {"code", "date", "machine", "outputs"}
    assert failure(found) == ""
    first = next(each for each in found.cells if each.cell_type == "code")
    printed = "".join(each.get("text", "") for each in first.outputs)
    assert found.metadata["executed"]["date"] in printed
    assert found.metadata["executed"]["machine"] in printed
    assert "Python 3" in printed
    nbformat.validate(found)
