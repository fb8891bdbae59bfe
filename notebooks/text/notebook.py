"""A chapter's cells as a notebook, and how a notebook on the disk differs from them."""

import hashlib
import json
import os
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from common.backends.frameworks import FRAMEWORKS
from common.base.files import write_text
from notebooks.drawing import pictures
from notebooks.drawing.pictures import SVG, mime_bundle
from notebooks.text.chapter import CHAPTERS, SHARED, Cell, cells
from notebooks.text.sources import ROOT

FOLDER: Final = ROOT / "notebooks"

Notebook = Any
"""nbformat's class of a notebook, which has no types."""

FOLDED: Final = {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
SHOW: Final = "show(pictures."
KERNEL: Final = {"name": "python3", "display_name": "Python 3", "language": "python"}

NOTEBOOKS: Final = (*((name, of) for of in FRAMEWORKS for name in CHAPTERS), (SHARED, None))
"""Chapters and their frameworks; the shared chapter has none."""


def path_of(name: str, framework: str | None) -> Path:
    """The file of a notebook: in the framework's folder, or beside these if it is shared."""
    return FOLDER / (framework or "") / f"{name}.ipynb"


def notebook(name: str, framework: str | None) -> Notebook:
    """The notebook of a chapter in a framework, without outputs."""
    shown = [cell for cell in cells(name, framework) if cell.kind != "explorer"]
    nb = new_notebook(cells=[_cell(cell, framework) for cell in shown])
    language = {"name": "python", "file_extension": ".py"}
    nb.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": language})
    return nb


def _cell(cell: Cell, framework: str | None) -> Any:
    if cell.kind == "prose":
        return new_markdown_cell(relink(cell.text, framework), id=cell.id)
    if cell.kind == "picture":
        outputs = [new_output("display_data", mime_bundle(pictures.draw(cell.words)))]
        code = f"{SHOW}{cell.words})"
        return new_code_cell(code, id=cell.id, metadata=FOLDED, outputs=outputs)
    return new_code_cell(cell.text, id=cell.id, metadata=FOLDED if cell.kind == "solution" else {})


def relink(text: str, framework: str | None) -> str:
    """Prose with links to chapters' notebooks, and other links relative to the notebook."""
    for name in (*CHAPTERS, SHARED):
        target = path_of(name, (framework or FRAMEWORKS[0]) if name in CHAPTERS else None)
        place = os.path.relpath(target, FOLDER / (framework or ""))
        text = text.replace(f"]({name}.md)", f"]({place})")
    return text if framework else text.replace("](../../", "](../")


def read(path: Path) -> Notebook:
    """A notebook on the disk."""
    return nbformat.read(path, as_version=4)


def write(path: Path, nb: Notebook) -> None:
    """Writes a notebook atomically."""
    write_text(path, nbformat.writes(nb) + "\n")


def run_cells(nb: Notebook) -> list[Any]:
    """The cells of code, but those of pictures, whose outputs need no run."""
    return [c for c in nb.cells if c.cell_type == "code" and not c.source.startswith(SHOW)]


def digests(nb: Notebook) -> dict[str, str]:
    """The digests of the code that is run and of its outputs, in order."""
    cells = run_cells(nb)
    code = "\0".join(cell.source for cell in cells)
    outputs = json.dumps([cell.outputs for cell in cells], sort_keys=True)
    pairs = {"code": code, "outputs": outputs}.items()
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in pairs}


def difference(stored: Notebook, built: Notebook) -> str:
    """The first difference of a stored notebook from text, listings and pictures, if any."""
    for old, new in zip_longest(stored.cells, built.cells):
        if old is None or new is None or _content(old, new) != _content(new, new):
            return f"the cell {(new or old).id} is another one"
    executed = stored.metadata.get("executed")
    if not executed:
        return "it has no outputs"
    if not digests(stored).items() <= executed.items():
        return "its outputs are not those of a run of its code"
    return failure(stored)


def _content(cell: Any, built: Any) -> tuple[object, ...]:
    """All of a cell but its outputs, unless the built cell has a picture as output."""
    pictures = [output["data"][SVG] for output in cell.outputs] if built.get("outputs") else []
    return cell.id, cell.cell_type, cell.source, cell.metadata, pictures


def failure(nb: Notebook) -> str:
    """The first error or output to standard error, with its cell; empty if none."""
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                return f"cell {cell.id}: {output.ename}: {output.evalue}"
            if output.output_type == "stream" and output.name == "stderr":
                return f"cell {cell.id} wrote to standard error: {output.text.strip()}"
    return ""


def copy_outputs(stored: Notebook, built: Notebook) -> None:
    """Copies the outputs of a stored notebook if its code is the same."""
    if digests(stored)["code"] == digests(built)["code"] and "executed" in stored.metadata:
        for old, new in zip(run_cells(stored), run_cells(built), strict=True):
            new.outputs, new.execution_count = old.outputs, old.execution_count
        built.metadata["executed"] = stored.metadata["executed"]
