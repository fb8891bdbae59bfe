"""The notebooks are as text, listings and pictures say, and one changed word is seen."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.base.errors import RunError
from notebooks.text.notebook import read

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of what notebooks are made of."""
    for room in ("common", "frameworks", "notebooks", "docs"):
        ignored = shutil.ignore_patterns("__pycache__", "chapters.md", "sources")
        shutil.copytree(ROOT / room, tmp_path / room, ignore=ignored)
    return tmp_path


def python(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


STALE = "from notebooks.build import stale; print(*stale(), sep='\\n')"


def test_one_changed_word_of_text_listing_or_picture_is_seen(clone: Path) -> None:
    change(clone / "notebooks/chapters/parity.md", "the", "a")
    change(clone / "frameworks/mxnet/wrappers.py", "update_on_kvstore=False", "update_on_kvstore=0")
    change(clone / "notebooks/drawing/pictures.py", "minibatch of ", "a minibatch of ")
    (clone / "notebooks/jax/allreduce.ipynb").unlink()
    found = dict(
        line.split(": ", 1) for line in python(clone, "-c", STALE).stdout.strip().split("\n")
    )
    picture = "the cell data-parallelism-2 has another picture"
    assert re.fullmatch("the cell .* has another text", found.pop("notebooks/parity.ipynb"))
    listing = found.pop("notebooks/mxnet/multiple-gpus-concise.ipynb")
    assert re.fullmatch("the cell .* has another text", listing)
    assert found == {
        "notebooks/jax/allreduce.ipynb": "it is missing",
        "docs/data-parallelism.svg": "it is another picture",
        **{
            f"notebooks/{framework}/multiple-gpus.ipynb": picture
            for framework in ("pytorch", "tensorflow", "jax", "mxnet")
        },
    }
    done = python(clone, "-m", "notebooks.build", "--check")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "; 4 more: `python -m notebooks.build` writes text, `nox -s notebooks" in line


def test_new_prose_keeps_the_outputs_and_new_code_does_not(clone: Path) -> None:
    path = clone / "notebooks/jax/multiple-gpus.ipynb"
    before = [each.get("outputs") for each in read(path).cells]
    chapter = clone / "notebooks/chapters/multiple-gpus.md"
    change(chapter, "You need no GPU.", "No GPU is needed.")
    change(chapter, "## One step", "## A single step")
    change(clone / "frameworks/mxnet/scratch.py", "The logits (n, 10) of", "Logits (n, 10) of")
    assert python(clone, "-m", "notebooks.build").returncode == 0
    assert [each.get("outputs") for each in read(path).cells] == before
    cells = read(clone / "notebooks/mxnet/multiple-gpus.ipynb").cells
    left = {output.output_type for cell in cells for output in cell.get("outputs", [])}
    assert left == {"display_data"}  # pictures need no run
    found = python(clone, "-c", STALE).stdout
    assert found == "notebooks/mxnet/multiple-gpus.ipynb: it has no outputs\n"


@pytest.mark.parametrize("content", [b"{", b'{"cells": 3}', b"\xff"])
def test_what_is_no_notebook_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "chapter.ipynb"
    path.write_bytes(content)
    with pytest.raises(RunError, match=r"chapter\.ipynb is no notebook"):
        read(path)
