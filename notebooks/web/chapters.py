"""The blocks of a chapter on the site: code with its output, in tabs where frameworks differ.

Sphinx reads the chapter's text itself. A block becomes the cells of the frameworks' notebooks: once
if all are the same, otherwise in a tab for each framework.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import PurePath
from typing import Any, Final

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx_design.shared import create_component

from common.backends.frameworks import FRAMEWORKS
from notebooks.text.chapter import CHAPTERS, TEXTS, Cell, cells
from notebooks.text.notebook import path_of, read

LABELS: Final = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX", "mxnet": "MXNet"}
"""The frameworks' names in their own spelling."""

COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""Escape sequences of a terminal's colours."""

MARKUP: Final = ("image/svg+xml", "text/html")
"""Kinds of output that are put into the page unchanged: they come from the project's code."""

Output = tuple[str, str]
"""Text as a program prints it ("text"), or markup of a page ("markup")."""


def exclude_from_search(markup: str) -> str:
    """Markup in whose style sheets, data and titles the search highlights no words."""
    return re.sub(r"<(style|script|title|desc)(?=[ >])", r'<\1 class="nohighlight"', markup)


def outputs(cell: Any) -> Iterator[Output]:
    """The outputs of a notebook's cell; adjacent texts are joined. Raises KeyError if unknown."""
    pairs = map(_output, cell.get("outputs", []))
    for kind, group in groupby(pairs, key=lambda pair: pair[0]):
        texts = [text for _, text in group]
        yield from [(kind, "".join(texts))] if kind == "text" else ((kind, text) for text in texts)


def _output(output: Any) -> Output:
    if output.output_type == "stream":
        return "text", COLOURS.sub("", output.text)
    for kind in MARKUP:
        if kind in output.data:
            return "markup", output.data[kind]
    return "text", COLOURS.sub("", output.data["text/plain"]) + "\n"


@cache
def columns(name: str) -> dict[str | None, dict[int, tuple[Cell, tuple[Output, ...]]]]:
    """The cells of a chapter with their outputs, by framework and by their line in the text."""
    by_framework = {}
    for framework in FRAMEWORKS if name in CHAPTERS else (None,):
        nb = read(path_of(name, framework))
        printed = {cell.id: tuple(outputs(cell)) for cell in nb.cells}
        column = {cell.line: (cell, printed[cell.id]) for cell in cells(name, framework)}
        by_framework[framework] = column
    return by_framework


class Only(SphinxDirective):
    """The part of a chapter that is for some frameworks."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """A part for each of these frameworks."""
        parts = []
        for framework in self.arguments[0].split():
            self.env.temp_data["framework"] = framework
            parts.append(nodes.container(framework=framework))
            self.state.nested_parse(self.content, self.content_offset, parts[-1])
        del self.env.temp_data["framework"]
        return parts


class Code(SphinxDirective):
    """A block of a chapter that is code in its notebooks."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """The code with its outputs, or a part for each framework."""
        only = self.env.temp_data.get("framework")
        cells_here = {
            framework: column[self.lineno]
            for framework, column in columns(PurePath(self.env.docname).name).items()
            if only in (None, framework)
        }
        render = self.provenance if self.name == "setup" else self.code
        parts = {framework: render(framework, *cell) for framework, cell in cells_here.items()}
        if len({(cell.text, printed) for cell, printed in cells_here.values()}) == 1:
            return next(iter(parts.values()))
        return [nodes.container("", *part, framework=name) for name, part in parts.items()]

    def code(self, _: str | None, cell: Cell, printed: tuple[Output, ...]) -> list[nodes.Node]:
        """A cell with its outputs."""
        code = nodes.literal_block(cell.text, cell.text, language="python")
        content = [code, *map(box, printed)]
        return [dropdown("Solution", *content)] if self.name == "solution" else content

    def provenance(
        self, framework: str | None, _: Cell, printed: tuple[Output, ...]
    ) -> list[nodes.Node]:
        """A note: versions and machine of the notebook's run, and a link to download it."""
        path = path_of(PurePath(self.env.docname).name, framework)
        words = nodes.inline("", "Download the notebook")
        link = addnodes.download_reference("", "", words, refdoc=self.env.docname)
        link["reftarget"] = os.path.relpath(path, TEXTS)
        texts = ("Run with " + "".join(text for _, text in printed)).splitlines()
        lines = [*(nodes.line("", text) for text in texts), nodes.line("", "", link)]
        return [nodes.container("", nodes.line_block("", *lines), classes=["made-with"])]


def box(output: Output) -> nodes.Node:
    """An output in a box; markup unchanged."""
    kind, text = output
    if kind == "markup":
        return nodes.raw(
            "", f'<div class="output">\n{exclude_from_search(text)}\n</div>', format="html"
        )
    text = text.rstrip("\n")
    verdict = (
        ["verdict"]
        if text.startswith(("right: ", "right, but ", "wrong: ", "not judged: "))
        else []
    )
    return nodes.literal_block(text, text, language="text", classes=["output", *verdict])


def dropdown(title: str, *content: nodes.Node) -> nodes.Node:
    """Nodes that are folded at first, as by sphinx-design's directive."""
    classes = {"container_classes": ["sd-mb-3"], "title_classes": [], "body_classes": []}
    shape = {"type": "dropdown", "opened": False, "has_title": True, "icon": None, "chevron": None}
    children = [nodes.rubric(title, title), *content]
    return create_component("dropdown", children=children, **shape, **classes)


def tab_set(parts: Mapping[str, Sequence[nodes.Node]]) -> nodes.Node:
    """A tab for each framework that has a part, as by sphinx-design's directives."""
    tabs = create_component("tab-set", classes=["sd-tab-set"])
    for framework, words in LABELS.items():
        if framework in parts:
            label = nodes.rubric(words, words, classes=["sd-tab-label"])
            label["sync_id"], label["sync_group"] = framework, "framework"
            inside = {"classes": ["sd-tab-content"], "children": parts[framework]}
            children = [label, create_component("tab-content", **inside)]
            tabs += create_component("tab-item", ["sd-tab-item"], children=children, selected=False)
    return tabs


def join_tabs(_app: Sphinx, document: nodes.document) -> None:
    """Joins adjacent parts for single frameworks into a set of tabs."""

    def framework_of(node: nodes.Node) -> str:
        return str(getattr(node, "attributes", {}).get("framework", ""))

    parents = [part.parent for part in document.findall(nodes.container) if framework_of(part)]
    for parent in dict.fromkeys(parents):
        children: list[nodes.Node] = []
        for tabbed, group in groupby(parent.children, lambda node: bool(framework_of(node))):
            tabs: dict[str, list[nodes.Node]] = {}
            for node in group:
                tabs.setdefault(framework_of(node), []).extend(node.children if tabbed else [node])
            children += [tab_set(tabs)] if tabbed else tabs[""]
        parent[:] = children


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the blocks; `only` takes the place of Sphinx's own."""
    app.add_directive("only", Only, override=True)
    for name in ("setup", "listing", "solution", "cell"):
        app.add_directive(name, Code)
    app.connect("doctree-read", join_tabs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
