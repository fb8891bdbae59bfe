"""The committed notebooks: they are as text and listings say, and one changed word is seen."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from notebooks.build import everything
from notebooks.execute import main
from notebooks.text import notebook as files
from notebooks.text.notebook import (
    code_digest,
    difference,
    failure,
    notebook,
    path_of,
    read,
    with_outputs,
)

ROOT = Path(__file__).parents[2]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what notebooks are made of."""
    folder = tmp_path_factory.mktemp("clone")
    for room in ("common", "frameworks", "notebooks"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, folder / room, ignore=ignored)
    return folder


@pytest.fixture
def clone(original: Path) -> Iterator[Path]:
    """The same; what a test changes in it is put back."""
    kept = {path: path.read_bytes() for path in original.rglob("*") if path.is_file()}
    yield original
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
    assert [part.split(":")[0].rpartition(" ")[2] for part in done.stderr.split("; ")] == stale


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
    assert not any(each.get("outputs") for each in read(path).cells)
    done = build(clone, "--check")
    assert done.returncode == 1
    assert "notebooks/jax/multiple-gpus.ipynb: it has no outputs" in done.stderr


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"cells": 3}', b"\xff"])
def test_what_is_no_notebook_is_named(clone: Path, content: bytes) -> None:
    (clone / "notebooks/jax/multiple-gpus.ipynb").write_bytes(content)
    for flags in ((), ("--check",)):
        done = build(clone, *flags)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert "jax/multiple-gpus.ipynb is no notebook" in line


@pytest.mark.parametrize(("name", "of"), everything())
def test_committed_outputs_say_where_they_come_from(name: str, of: str | None) -> None:
    found = read(path_of(name, of))
    assert set(found.metadata["executed"]) == {"code", "date", "machine"}
    assert failure(found) == ""
    first = next(each for each in found.cells if each.cell_type == "code")
    printed = "".join(each.get("text", "") for each in first.outputs)
    assert found.metadata["executed"]["date"] in printed
    assert found.metadata["executed"]["machine"] in printed
    assert "Python 3" in printed
    nbformat.validate(found)


def made() -> Any:
    return notebook("multiple-gpus", "jax")


def executed() -> Any:
    found = made()
    for cell in found.cells:
        if cell.cell_type == "code":
            cell.outputs = [nbformat.v4.new_output("stream", text=f"of {cell.id}")]
    found.metadata["executed"] = nbformat.from_dict({"code": code_digest(found)})
    return found


def test_every_kind_of_difference_is_named() -> None:
    assert difference(executed(), made()) == ""
    for spoil, name in (
        (lambda nb: nb.cells.pop(3), "is missing"),
        (lambda nb: nb.cells.append(nbformat.v4.new_markdown_cell("more")), "are others"),
        (lambda nb: nb.cells.insert(0, nb.cells.pop(3)), "another order"),
        (lambda nb: nb.cells[2].update(source="other"), "has another text"),
        (lambda nb: nb.metadata.pop("executed"), "of other code"),
        (lambda nb: [each.pop("outputs", None) for each in nb.cells], "no outputs"),
    ):
        found = executed()
        spoil(found)
        assert name in difference(found, made())


def test_outputs_go_with_their_cell() -> None:
    code = [each for each in with_outputs(made(), executed()).cells if each.cell_type == "code"]
    assert [each.outputs[0].text for each in code] == [f"of {each.id}" for each in code]


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("1 / 0", "cell bad: ZeroDivisionError: division by zero"),
        ("import warnings\nwarnings.warn('careful')", "cell bad wrote to standard error"),
    ],
)
def test_a_cell_that_fails_or_warns_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: str,
    complaint: str,
) -> None:
    bad = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code, id="bad")])
    monkeypatch.setattr("notebooks.execute.notebook", lambda *_: bad)
    monkeypatch.setattr(files, "FOLDER", tmp_path / "kept")
    assert main(["jax", "--chapter=multiple-gpus", "--write", f"--out={tmp_path}"]) == 1
    assert complaint in capsys.readouterr().err
    assert read(tmp_path / "jax" / "multiple-gpus.ipynb").cells[0].id == "bad"  # to look at
    assert not (tmp_path / "kept" / "jax" / "multiple-gpus.ipynb").exists()
