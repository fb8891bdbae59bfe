"""Notebooks are as text, listings and pictures say."""

import shutil
from pathlib import Path

import nbformat
import pytest
from started import ROOT, python

from common.backends.frameworks import FRAMEWORKS
from notebooks.execute import failure, main
from notebooks.text import notebook as files
from notebooks.text.notebook import is_run, path_of, read
from notebooks.web.chapters import outputs

STALE = "from notebooks.build import stale; print(*stale(), sep='\\n')"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of all sources of notebooks."""
    for room in ("common", "frameworks", "notebooks", "docs"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, tmp_path / room, ignore=ignored)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_one_changed_word_of_text_listing_or_picture_is_seen(clone: Path) -> None:
    change(clone / "docs/chapters/parity.md", "the", "a")
    change(clone / "frameworks/mxnet/wrappers.py", "on_kvstore=False", "on_kvstore=0")
    change(clone / "notebooks/drawing/data-parallelism.svg", "minibatch of ", "a batch of ")
    (clone / "notebooks/jax/allreduce.ipynb").unlink()
    assert set(python("-c", STALE, folder=clone).stdout.split()) == {
        "notebooks/parity.ipynb",
        "notebooks/mxnet/multiple-gpus-concise.ipynb",
        "notebooks/jax/allreduce.ipynb",
        "docs/data-parallelism.svg",
        *(f"notebooks/{framework}/multiple-gpus.ipynb" for framework in FRAMEWORKS),
    }
    failed = python("-m", "notebooks.build", "--check", folder=clone)
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1


def test_new_prose_keeps_the_outputs_and_new_code_does_not(clone: Path) -> None:
    path = clone / "notebooks/jax/multiple-gpus.ipynb"
    before = [cell.get("outputs") for cell in read(path).cells]
    chapter = clone / "docs/chapters/multiple-gpus.md"
    change(chapter, "Without GPUs, devices", "Without a GPU, devices")
    change(chapter, "## One step", "## A single step")
    change(clone / "frameworks/mxnet/scratch.py", "One step of SGD on a", "A step of SGD on a")
    assert python("-m", "notebooks.build", folder=clone).returncode == 0
    assert [cell.get("outputs") for cell in read(path).cells] == before
    cells = read(clone / "notebooks/mxnet/multiple-gpus.ipynb").cells
    left = {output.output_type for cell in cells for output in cell.get("outputs", [])}
    assert left == {"display_data"}  # pictures need no run
    stale = python("-c", STALE, folder=clone).stdout
    assert stale == "notebooks/mxnet/multiple-gpus.ipynb\n"


def test_outputs_of_other_code_or_another_run_are_named() -> None:
    for spoil in ({"code": "0"}, {"outputs": "0"}, {}):
        stored = read(path_of("allreduce", "jax"))
        stored.metadata["executed"].update(spoil)
        assert is_run(stored) == (not spoil)


def test_a_run_is_not_stale_and_a_cell_that_fails_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(files, "FOLDER", tmp_path / "kept")
    flags = ["jax", "--chapter=multiple-gpus", f"--out={tmp_path / 'out'}", "--write"]
    kept = tmp_path / "kept" / "jax" / "multiple-gpus.ipynb"
    picture = nbformat.v4.new_code_cell("show(pictures.__doc__)", id="picture")
    for code, status in (("1 / 0", 1), ("show = pictures = print\nprint(6 * 7)", 0)):
        first = nbformat.v4.new_code_cell(code, id="first")
        nb = nbformat.v4.new_notebook(cells=[first, picture])
        monkeypatch.setattr(
            "notebooks.text.notebook.notebook", lambda *_, nb=nb: nbformat.from_dict(nb)
        )
        assert main(flags) == status
        assert kept.exists() == (status == 0)
    assert "cell first: ZeroDivisionError: division by zero" in capsys.readouterr().err
    assert read(kept).cells[0].outputs[0].text == "42\n"
    built = files.with_outputs("multiple-gpus", "jax", kept)
    assert files.text_of(built) == kept.read_text(encoding="utf-8")
    assert is_run(built)
    warning = nbformat.v4.new_output("stream", name="stderr", text="careful\n")
    cell = nbformat.v4.new_code_cell("", id="bad", outputs=[warning])
    assert failure(nbformat.v4.new_notebook(cells=[cell])) == (
        "cell bad wrote to standard error: careful"
    )


def test_the_site_shows_texts_with_those_beside_them_and_pictures() -> None:
    printed = nbformat.v4.new_output("stream", name="stdout", text="\x1b[31m1\n")
    result = nbformat.v4.new_output("execute_result", {"text/plain": "2"})
    picture = nbformat.v4.new_output("display_data", {"image/svg+xml": "<svg/>", "text/plain": "a"})
    cell = nbformat.v4.new_code_cell("", outputs=[printed, result, picture])
    assert list(outputs(cell)) == [("text", "1\n2\n"), ("markup", "<svg/>")]
