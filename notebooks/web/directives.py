"""What Sphinx needs for this site: chapters, figures, help of commands, maths without scripts.

Listed as an extension in docs/conf.py.
"""

import os
import re
import subprocess
import sys
from pathlib import PurePath
from typing import Any, Final

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from notebooks.drawing import pictures
from notebooks.explorers.figures import explorer
from notebooks.text.chapter import TEXTS
from notebooks.text.sources import ROOT
from notebooks.web import runtime
from notebooks.web.chapters import exclude_from_search, page

SHORTER: Final = {
    r"Annotated\[([^,]+), (?:[^][]|\[[^]]*\])*\]": r"\1",
    r"~?numpy\.ndarray\[.*?\]\]": "Array",
    r"dict\[str, Array\]": "Weights",
    r"^\(\*args, \*\*kwargs\)$": "",  # of a protocol
}
"""Types as they are spelled out, with checks, and their names in common/base/arrays.py."""


class Figure(SphinxDirective):
    """A picture of notebooks/drawing/pictures.py, or an explorer by its name."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The figure in the page; an explorer's Python and script are in the folder of assets."""
        if self.name == "picture":
            markup = f'<div class="shown-picture">\n{pictures.draw(self.arguments[0])}\n</div>'
        else:
            above = "../" * self.env.docname.count("/")
            markup = explorer(self.arguments[0], f"{above}_static" if runtime.is_there() else "")
        return [nodes.raw("", exclude_from_search(markup), format="html")]


class CommandHelp(SphinxDirective):
    """The `--help` of a command, when the site is built."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The help as a block of text, 100 columns wide."""
        command = [sys.executable, "-m", self.arguments[0], "--help"]
        variables = {**os.environ, "COLUMNS": "100"}
        text = subprocess.check_output(command, cwd=ROOT, env=variables, text=True).rstrip()
        return [nodes.literal_block(text, text, language="text", classes=["output"])]


def shorter_signature(*arguments: Any) -> tuple[str, str] | None:
    """A signature and the type that is returned, with short names."""
    signature, result = (text or "" for text in arguments[-2:])
    for spelled, name in SHORTER.items():
        signature, result = (re.sub(spelled, name, text) for text in (signature, result))
    return (signature, result) if arguments[-2] else None


def maths(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """A formula in a line, or a displayed one, as MathML, which needs no script."""
    displayed = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=displayed)
    translator.body.append(f'<div class="formula">{formula}</div>' if displayed else formula)
    raise nodes.SkipNode


def write_blocks(_app: Sphinx, name: str, source: list[str]) -> None:
    """Replaces the text of a chapter when Sphinx has read it."""
    if PurePath(name).parent.name == TEXTS.name:
        source[0] = page(PurePath(name).name)


def bring_python(app: Sphinx, failure: Exception | None) -> None:
    """Puts Python beside the assets of a site that is complete."""
    if failure is None and app.builder.format == "html" and runtime.is_there():
        runtime.bring(app.outdir / "_static")


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directives, the texts of chapters and the renderer of formulas."""
    app.add_directive("picture", Figure)
    app.add_directive("explorer", Figure)
    app.add_directive("command-help", CommandHelp)
    app.connect("source-read", write_blocks)
    app.connect("build-finished", bring_python)
    app.connect("autodoc-process-signature", shorter_signature)
    app.add_html_math_renderer("mathml", (maths, None), (maths, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
