"""A chapter's cells as a notebook, and what of a notebook on the disk is not what they say."""

import hashlib
import json
import os
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from common.backends.frameworks import FRAMEWORKS
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


def all_notebooks(framework: str | None = None) -> list[tuple[str, str | None]]:
    """The chapters of a framework, each with its name; without one, the shared chapter."""
    return [(name, framework) for name in CHAPTERS] if framework else [(SHARED, None)]


def path_of(name: str, framework: str | None) -> Path:
    """The file of a notebook: in the framework's folder, or beside these if it is shared."""
    return FOLDER / (framework or "") / f"{name}.ipynb"


def notebook(name: str, framework: str | None) -> Notebook:
    """The notebook of a chapter in a framework, without outputs."""
    made = new_notebook(cells=[_cell(each, framework) for each in cells(name, framework)])
    language = {"name": "python", "file_extension": ".py"}
    made.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": language})
    return made


def _cell(cell: Cell, framework: str | None) -> Any:
    if cell.kind == "prose":
        return new_markdown_cell(relinked(cell.text, framework), id=cell.id)
    if cell.kind == "picture":
        code, picture = f"show(pictures.{cell.text})", shown(pictures.drawn(cell.text))
        outputs = [new_output("display_data", picture)]
        return new_code_cell(code, id=cell.id, metadata=FOLDED, outputs=outputs)
    return new_code_cell(cell.text, id=cell.id, metadata=FOLDED if cell.kind == "solution" else {})


def relinked(text: str, framework: str | None) -> str:
    """Prose whose links to other chapters lead to their notebooks, and whose others still hold."""
    for name in (*CHAPTERS, SHARED):
        target = path_of(name, (framework or FRAMEWORKS[0]) if name in CHAPTERS else None)
        place = os.path.relpath(target, FOLDER / (framework or ""))
        text = text.replace(f"]({name}.md)", f"]({place})")
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


def difference(found: Notebook, wanted: Notebook) -> str:
    """What of a notebook is not what text, listings and pictures say; empty if nothing."""
    for theirs, ours in zip_longest(found.cells, wanted.cells):
        if ours is None or theirs is None or _stated(theirs, ours) != _stated(ours, ours):
            return f"the cell {(ours or theirs).id} is another one"
    executed = found.metadata.get("executed")
    if not executed:
        return "it has no outputs"
    if (executed.get("code"), executed.get("outputs")) != (
        code_digest(found),
        outputs_digest(found),
    ):
        return "its outputs are not those of a run of its code"
    return failure(found)


def _stated(cell: Any, wanted: Any) -> tuple[object, ...]:
    """What of a cell has to be as wanted: all but outputs, unless these are a picture."""
    pictures = [each["data"][SVG] for each in cell.outputs] if wanted.get("outputs") else []
    return cell.id, cell.cell_type, cell.source, cell.metadata, pictures


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
