"""What makes a notebook stale, and what a run of one says of a cell that fails."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from notebooks.execute import main
from notebooks.text import notebook as files
from notebooks.text.notebook import (
    code_digest,
    difference,
    failure,
    notebook,
    outputs_digest,
    read,
)


def made() -> Any:
    return notebook("multiple-gpus", "jax")


def executed() -> Any:
    found = made()
    for cell in found.cells:
        if cell.cell_type == "code":
            cell.outputs.append(nbformat.v4.new_output("stream", text=f"of {cell.id}"))
    digests = {"code": code_digest(found), "outputs": outputs_digest(found)}
    found.metadata["executed"] = nbformat.from_dict(digests)
    return found


SPOILT: list[tuple[Callable[[Any], object], str]] = [
    (lambda nb: nb.cells.pop(3), "is missing"),
    (lambda nb: nb.cells.append(nbformat.from_dict({"id": "more", "source": ""})), "are others"),
    (lambda nb: nb.cells.insert(0, nb.cells.pop(3)), "another order"),
    (lambda nb: nb.cells[2].update(source="other"), "has another text"),
    (lambda nb: nb.cells[2].update(cell_type="raw"), "has another text"),
    (lambda nb: nb.cells[2].metadata.update(jupyter={}), "is folded, or should be"),
    (lambda nb: nb.metadata.pop("executed"), "no outputs"),
    (lambda nb: nb.metadata["executed"].update(code="0"), "of other code"),
    (lambda nb: nb.cells[1].update(outputs=[]), "not those of the run"),
]


@pytest.mark.parametrize(("spoil", "name"), SPOILT)
def test_every_kind_of_difference_is_named(spoil: Callable[[Any], object], name: str) -> None:
    assert difference(executed(), made()) == ""
    found = executed()
    spoil(found)
    assert name in difference(found, made())


def test_a_cell_that_warns_is_named() -> None:
    warning = nbformat.v4.new_output("stream", name="stderr", text="careful\n")
    cell = nbformat.v4.new_code_cell("", id="bad", outputs=[warning])
    assert failure(nbformat.v4.new_notebook(cells=[cell])) == (
        "cell bad wrote to standard error: careful"
    )


def test_a_cell_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0", id="bad")])
    monkeypatch.setattr("notebooks.execute.notebook", lambda *_: bad)
    monkeypatch.setattr(files, "FOLDER", tmp_path / "kept")
    assert main(["jax", "--chapter=multiple-gpus", "--write", f"--out={tmp_path}"]) == 1
    assert "cell bad: ZeroDivisionError: division by zero" in capsys.readouterr().err
    assert read(tmp_path / "jax" / "multiple-gpus.ipynb").cells[0].id == "bad"  # to look at
    assert not (tmp_path / "kept" / "jax" / "multiple-gpus.ipynb").exists()


def test_outputs_that_are_kept_are_those_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(6 * 7)", id="good")])
    monkeypatch.setattr("notebooks.execute.notebook", lambda *_: nbformat.from_dict(wanted))
    monkeypatch.setattr(files, "FOLDER", tmp_path / "kept")
    flags = ["jax", "--chapter=multiple-gpus", f"--out={tmp_path / 'out'}"]
    kept = tmp_path / "kept" / "jax" / "multiple-gpus.ipynb"
    assert main(flags) == 0
    assert not kept.exists()
    assert main([*flags, "--write"]) == 0
    found = read(kept)
    assert found.cells[0].outputs[0].text == "42\n"
    assert difference(found, wanted) == ""
