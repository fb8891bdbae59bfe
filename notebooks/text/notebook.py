"""A chapter's cells as a notebook, with the outputs of its last run."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Final

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from common.backends.frameworks import FRAMEWORKS
from notebooks.drawing import pictures
from notebooks.drawing.pictures import mime_bundle
from notebooks.text.chapter import CHAPTERS, SHARED, Cell, cells
from notebooks.text.sources import ROOT

FOLDER: Final = ROOT / "notebooks"

Notebook = Any
"""nbformat's class of a notebook, which has no types."""

FOLDED: Final = {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
SHOW: Final = "show(pictures."
METADATA: Final = {
    "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    "language_info": {"name": "python", "file_extension": ".py"},
}

NOTEBOOKS: Final = (*((name, of) for of in FRAMEWORKS for name in CHAPTERS), (SHARED, None))
"""Chapters and their frameworks; the shared chapter has none."""


def path_of(name: str, framework: str | None) -> Path:
    """The file of a notebook: in the framework's folder, or beside these if it is shared."""
    return FOLDER / (framework or "") / f"{name}.ipynb"


def notebook(name: str, framework: str | None) -> Notebook:
    """The notebook of a chapter in a framework, without outputs."""
    read_cells = (cell for cell in cells(name, framework) if cell.kind != "explorer")
    shown = [_cell(cell, framework) for cell in read_cells]
    return new_notebook(cells=shown, metadata=nbformat.from_dict(METADATA))


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


def with_outputs(name: str, framework: str | None, path: Path) -> Notebook:
    """The notebook, with the outputs of the one at a path if that has the same code."""
    nb = notebook(name, framework)
    if path.is_file():
        stored = read(path)
        if digests(stored)["code"] == digests(nb)["code"] and "executed" in stored.metadata:
            for old, new in zip(run_cells(stored), run_cells(nb), strict=True):
                new.outputs, new.execution_count = old.outputs, old.execution_count
            nb.metadata["executed"] = stored.metadata["executed"]
    return nb


def read(path: Path) -> Notebook:
    """A notebook on the disk."""
    return nbformat.read(path, as_version=4)


def text_of(nb: Notebook) -> str:
    """The text of a notebook's file."""
    return str(nbformat.writes(nb)) + "\n"


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


def is_run(nb: Notebook) -> bool:
    """Whether the outputs are those of a run of the code."""
    return bool(digests(nb).items() <= nb.metadata.get("executed", {}).items())
