"""The blocks of a chapter on the site: code with what it printed, what differs in tabs.

Sphinx reads the chapter's text itself. A block becomes the cells of the frameworks' notebooks that
stand for it: once if all are the same, else in a tab for each framework.
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
from notebooks.drawing.explorers import LABELS
from notebooks.text.chapter import CHAPTERS, TEXTS, Cell, cells
from notebooks.text.notebook import path_of, read

COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""What a terminal takes for a colour."""

MARKUP: Final = ("image/svg+xml", "text/html")
"""Kinds of output that stand in the page as they are: they come from the project's own code."""

Output = tuple[str, str]
"""Text as a program prints it ("text"), or markup of a page ("markup")."""


def unsearched(markup: str) -> str:
    """Markup in whose style sheets, data and titles the search marks no words it has found."""
    return re.sub(r"<(style|script|title|desc)(?=[ >])", r'<\1 class="nohighlight"', markup)


def outputs(cell: Any) -> Iterator[Output]:
    """What a cell of a notebook left; text that follows text is one. Raises KeyError if unknown."""
    found = map(_output, cell.get("outputs", []))
    for kind, some in groupby(found, key=lambda each: each[0]):
        texts = [text for _, text in some]
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
    found = {}
    for framework in FRAMEWORKS if name in CHAPTERS else (None,):
        left = {each.id: tuple(outputs(each)) for each in read(path_of(name, framework)).cells}
        found[framework] = {each.line: (each, left[each.id]) for each in cells(name, framework)}
    return found


class Only(SphinxDirective):
    """What a chapter says to some frameworks."""

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
        every = columns(PurePath(self.env.docname).name)
        only = self.env.temp_data.get("framework")
        found = {
            framework: column[self.lineno]
            for framework, column in every.items()
            if only in (None, framework)
        }
        made = self.made_with if self.name == "setup" else self.shown
        shown = {framework: made(framework, *cell) for framework, cell in found.items()}
        if len({(cell.text, left) for cell, left in found.values()}) == 1:
            return next(iter(shown.values()))
        return [nodes.container("", *some, framework=each) for each, some in shown.items()]

    def shown(self, _: str | None, cell: Cell, left: tuple[Output, ...]) -> list[nodes.Node]:
        """A cell with its outputs."""
        made = [nodes.literal_block(cell.text, cell.text, language="python"), *map(box, left)]
        return [dropdown("Solution", *made)] if self.name == "solution" else made

    def made_with(
        self, framework: str | None, _: Cell, left: tuple[Output, ...]
    ) -> list[nodes.Node]:
        """A note: with what and where the notebook was run, and where to have it."""
        place = path_of(PurePath(self.env.docname).name, framework)
        words = nodes.inline("", "Download the notebook")
        link = addnodes.download_reference("", "", words, refdoc=self.env.docname)
        link["reftarget"] = os.path.relpath(place, TEXTS)
        texts = ("Run with " + "".join(text for _, text in left)).splitlines()
        lines = [*(nodes.line("", each) for each in texts), nodes.line("", "", link)]
        return [nodes.container("", nodes.line_block("", *lines), classes=["made-with"])]


def box(output: Output) -> nodes.Node:
    """An output in a box of its own; markup as it is."""
    kind, text = output
    if kind == "markup":
        return nodes.raw("", f'<div class="output">\n{unsearched(text)}\n</div>', format="html")
    text = text.rstrip("\n")
    return nodes.literal_block(text, text, language="text", classes=["output"])


def dropdown(title: str, *content: nodes.Node) -> nodes.Node:
    """What is folded at first, as by sphinx-design's directive."""
    classes = {"container_classes": ["sd-mb-3"], "title_classes": [], "body_classes": []}
    shape = {"type": "dropdown", "opened": False, "has_title": True, "icon": None, "chevron": None}
    children = [nodes.rubric(title, title), *content]
    return create_component("dropdown", children=children, **shape, **classes)


def tab_set(parts: Mapping[str, Sequence[nodes.Node]]) -> nodes.Node:
    """A tab for each framework that has a part, as by sphinx-design's directives."""
    made = create_component("tab-set", classes=["sd-tab-set"])
    for framework, words in LABELS.items():
        if framework in parts:
            label = nodes.rubric(words, words, classes=["sd-tab-label"])
            label["sync_id"], label["sync_group"] = framework, "framework"
            inside = {"classes": ["sd-tab-content"], "children": parts[framework]}
            children = [label, create_component("tab-content", **inside)]
            made += create_component("tab-item", ["sd-tab-item"], children=children, selected=False)
    return made


def join_tabs(_app: Sphinx, document: nodes.document) -> None:
    """Makes a set of tabs of all parts that follow one another, each for one framework."""

    def framework_of(node: nodes.Node) -> str:
        return str(getattr(node, "attributes", {}).get("framework", ""))

    parents = [part.parent for part in document.findall(nodes.container) if framework_of(part)]
    for parent in dict.fromkeys(parents):
        made: list[nodes.Node] = []
        for some, group in groupby(parent.children, lambda node: bool(framework_of(node))):
            tabs: dict[str, list[nodes.Node]] = {}
            for node in group:
                tabs.setdefault(framework_of(node), []).extend(node.children if some else [node])
            made += [tab_set(tabs)] if some else tabs[""]
        parent[:] = made


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the blocks; `only` takes the place of Sphinx's own."""
    app.add_directive("only", Only, override=True)
    for name in ("setup", "listing", "solution", "cell"):
        app.add_directive(name, Code)
    app.connect("doctree-read", join_tabs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
