"""A chapter's cells as a notebook, and what of a notebook on the disk is not what they say."""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, Final

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from common.base.errors import RunError
from common.base.files import require_regular, write_text
from notebooks.drawing import pictures
from notebooks.drawing.shown import SVG, shown
from notebooks.text.chapter import CHAPTERS, SHARED, Cell, cells
from notebooks.text.sources import ROOT

FOLDER: Final = ROOT / "notebooks"

Notebook = Any
"""nbformat's class of a notebook, which has no types."""

FOLDED: Final = {"jupyter": {"source_hidden": True}, "collapsed": False}
KERNEL: Final = {"name": "python3", "display_name": "Python 3", "language": "python"}


def path_of(name: str, framework: str | None) -> Path:
    """Where the notebook of a chapter is."""
    return FOLDER / (framework or "") / f"{name}.ipynb"


def notebook(name: str, framework: str | None) -> Notebook:
    """The notebook of a chapter in a framework, without outputs."""
    kept = [each for each in cells(name, framework) if each.kind != "stepper"]  # the site's
    made = new_notebook(cells=[_cell(each, framework) for each in kept])
    made.metadata = nbformat.from_dict(
        {"kernelspec": KERNEL, "language_info": {"name": "python", "file_extension": ".py"}}
    )
    return made


def _cell(cell: Cell, framework: str | None) -> Any:
    if cell.kind == "prose":
        return new_markdown_cell(relinked(cell.text, framework), id=cell.id)
    if cell.kind == "picture":
        code, picture = f"show(pictures.{cell.text})", shown(pictures.drawn(cell.text))
        outputs = [new_output("display_data", picture)]
        return new_code_cell(code, id=cell.id, metadata=FOLDED, outputs=outputs)
    return new_code_cell(cell.text, id=cell.id, metadata=FOLDED if cell.folded else {})


def relinked(text: str, framework: str | None) -> str:
    """Prose whose links lead from the notebook to where they lead from the chapter's text."""

    def link(match: re.Match[str]) -> str:
        name = match[1]
        if name not in (*CHAPTERS, SHARED):
            return match[0]
        of = framework if name in CHAPTERS else None
        target = path_of(name, of or ("pytorch" if name in CHAPTERS else None))
        place = os.path.relpath(target, path_of(name, framework).parent)
        return f"]({Path(place).as_posix()})"

    text = re.sub(r"\]\(([\w-]+)\.md\)", link, text)
    return text if framework else text.replace("](../../", "](../")


def read(path: Path) -> Notebook:
    """A notebook on the disk. Raises RunError if it is none."""
    try:
        require_regular(path)
        return nbformat.read(path, as_version=4)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunError(f"{path} is no notebook: {error}") from None


def write(path: Path, made: Notebook) -> None:
    """Writes a notebook, whole or not at all."""
    write_text(path, nbformat.writes(made) + "\n")


def code_digest(made: Notebook) -> str:
    """The digest of all code of a notebook, in its order: what its outputs come from."""
    code = [each.source for each in made.cells if each.cell_type == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


def outputs_digest(made: Notebook) -> str:
    """The digest of all outputs of a notebook, in their order."""
    outputs = [each.outputs for each in made.cells if each.cell_type == "code"]
    return hashlib.sha256(json.dumps(outputs, sort_keys=True).encode()).hexdigest()


def pictures_in(cell: Any) -> list[str]:
    """The pictures among the outputs of a cell."""
    data = (each.get("data", {}) for each in cell.get("outputs", []))
    return [each[SVG] for each in data if SVG in each]


def difference(found: Notebook, wanted: Notebook) -> str:
    """What of a notebook is not what text, listings and pictures say; empty if nothing."""
    theirs = {each.id: each for each in found.cells}
    for cell in wanted.cells:
        if trouble := _change(theirs.get(cell.id), cell):
            return f"the cell {cell.id} {trouble}"
    if [each.id for each in found.cells] != [each.id for each in wanted.cells]:
        return "its cells are others, or in another order"
    executed = found.metadata.get("executed", {})
    if not executed:
        return "it has no outputs"
    if executed.get("code") != code_digest(wanted):
        return "its outputs are of other code"
    if executed.get("outputs") != outputs_digest(found):
        return "its outputs are not those of the run"
    return failure(found)


def _change(found: Any, wanted: Any) -> str:
    """What of a cell is not what it should be."""
    if found is None:
        return "is missing"
    if (found.source, found.cell_type) != (wanted.source, wanted.cell_type):
        return "has another text"
    if found.metadata.get("jupyter") != wanted.metadata.get("jupyter"):
        return "is folded, or should be"
    if pictures_in(wanted) and pictures_in(found) != pictures_in(wanted):
        return "has another picture"
    return ""


def failure(made: Notebook) -> str:
    """The first cell that raised an error or wrote to standard error, and what; empty if none."""
    for cell in made.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                return f"cell {cell.id}: {output.ename}: {output.evalue}"
            if output.output_type == "stream" and output.name == "stderr":
                return f"cell {cell.id} wrote to standard error: {output.text.strip()}"
    return ""


def with_outputs(made: Notebook, found: Notebook) -> Notebook:
    """The notebook with the outputs of another one that has the same code."""
    if code_digest(made) == code_digest(found) and "executed" in found.metadata:
        code = ([each for each in nb.cells if each.cell_type == "code"] for nb in (made, found))
        for new, old in zip(*code, strict=True):
            new.outputs, new.execution_count = old.outputs, old.execution_count
        made.metadata["executed"] = found.metadata["executed"]
    return made


def all_notebooks(framework: str | None = None) -> list[tuple[str, str | None]]:
    """The chapters of a framework, each with its name; without one, the shared chapter."""
    return [(name, framework) for name in CHAPTERS] if framework else [(SHARED, None)]
