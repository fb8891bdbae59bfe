"""The chapters on the site: code with its output, in tabs where frameworks differ.

A chapter's blocks become MyST. What all frameworks' notebooks have alike is there once, the rest in
a tab for each framework.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from common.backends.frameworks import FRAMEWORKS
from notebooks.drawing.pictures import SVG
from notebooks.text.chapter import CHAPTERS, TEXTS, Cell, blocks, cells
from notebooks.text.notebook import path_of, read

LABELS: Final = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX", "mxnet": "MXNet"}
"""The frameworks' names in their own spelling."""

COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""Escape sequences of a terminal's colours."""

VERDICTS: Final = ("right: ", "right, but ", "wrong: ", "not judged: ")

Output = tuple[str, str]
"""Text as a program prints it ("text"), or a picture ("markup")."""


def exclude_from_search(markup: str) -> str:
    """Markup in whose style sheets, data and titles the search highlights no words."""
    return re.sub(r"<(style|script|title|desc)(?=[ >])", r'<\1 class="nohighlight"', markup)


def outputs(cell: Any) -> Iterator[Output]:
    """The outputs of a notebook's cell; adjacent texts are joined. Raises KeyError if unknown."""
    found = cell.get("outputs", [])
    for drawn, group in groupby(found, key=lambda output: SVG in output.get("data", {})):
        if drawn:
            yield from (("markup", output["data"][SVG]) for output in group)
        else:
            texts = [each.get("text") or each["data"]["text/plain"] + "\n" for each in group]
            yield "text", COLOURS.sub("", "".join(texts))


def directive(name: str, argument: str, content: str = "", mark: str = "`````") -> str:
    """A block of MyST; the more signs its mark has, the more it may contain."""
    return f"{mark}{{{name}}} {argument}\n{content}\n{mark}"


def shown(name: str, framework: str | None) -> dict[str, str]:
    """The cells of a chapter in a framework, by their ids, as MyST with the notebook's outputs."""
    path = path_of(name, framework)
    printed = {cell.id: list(outputs(cell)) for cell in read(path).cells}
    texts = {}
    for cell in cells(name, framework):
        if cell.kind == "prose":
            texts[cell.id] = cell.text
        elif cell.kind in ("picture", "explorer"):
            texts[cell.id] = directive(cell.kind, cell.words)
        elif cell.kind == "setup":
            lines = "Run with " + "".join(text for _, text in printed[cell.id])
            escaped = re.sub(r"([\\`*_<>\[\]{}$])", r"\\\1", lines).splitlines()
            link = f"{{download}}`Download the notebook <{os.path.relpath(path, TEXTS)}>`"
            texts[cell.id] = directive("container", "made-with", "\\\n".join([*escaped, link]))
        else:
            texts[cell.id] = code(cell, printed[cell.id])
    return texts


def code(cell: Cell, printed: list[Output]) -> str:
    """A cell with its outputs, folded if it is a solution."""
    parts = [directive("code-block", "python", f"\n{cell.text}")]
    for kind, text in printed:
        if kind == "markup":
            markup = f'<div class="output">\n{exclude_from_search(text)}\n</div>'
            parts.append(directive("raw", "html", f"\n{markup}"))
        else:
            classes = "output verdict" if text.startswith(VERDICTS) else "output"
            text = text.rstrip("\n")
            parts.append(directive("code-block", "text", f":class: {classes}\n\n{text}"))
    content = "\n\n".join(parts)
    if cell.kind == "solution":
        return directive("dropdown", "Solution", content, "::::")
    return content


def tabs(parts: Sequence[list[str]]) -> str:
    """A tab for each framework that has a part."""
    items = [
        directive("tab-item", LABELS[name], f":sync: {name}\n\n" + "\n\n".join(texts), ":::::")
        for name, texts in zip(FRAMEWORKS, parts, strict=True)
        if texts
    ]
    return directive("tab-set", "", ":sync-group: framework\n\n" + "\n\n".join(items), "::::::")


def page(name: str) -> str:
    """The MyST of a chapter: what frameworks have alike, and tabs of what differs."""
    frameworks = FRAMEWORKS if name in CHAPTERS else (None,)
    columns = [shown(name, framework) for framework in frameworks]
    rows = [[texts.get(block.id) for texts in columns] for block in blocks(name)]
    parts = []
    for differ, group in groupby(rows, lambda row: len(set(row)) > 1):
        if differ:
            parts.append(tabs([list(filter(None, texts)) for texts in zip(*group, strict=True)]))
        else:
            parts += [str(row[0]) for row in group]
    return "\n\n".join(parts)
