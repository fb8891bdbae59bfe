"""Directives for this site: pictures, explorers, help of commands, maths without scripts.

Listed as an extension in docs/conf.py.
"""

import os
import re
import subprocess
import sys
from typing import Any, Final

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from notebooks.drawing import pictures
from notebooks.explorers.figures import explorer
from notebooks.text.sources import ROOT
from notebooks.web import runtime
from notebooks.web.chapters import exclude_from_search

SHORTER: Final = {
    r"Annotated\[([^,]+), (?:[^][]|\[[^]]*\])*\]": r"\1",
    r"~?numpy\.ndarray\[.*?\]\]": "Array",
    r"dict\[str, Array\]": "Weights",
    r"^\(\*args, \*\*kwargs\)$": "",  # of a protocol
}
"""Types as they are spelled out, with checks, and their names in common/base/arrays.py."""


class Picture(SphinxDirective):
    """A picture of notebooks/drawing/pictures.py, as in the texts of the chapters."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The picture as SVG in the page."""
        svg = exclude_from_search(pictures.draw(self.arguments[0]))
        return [nodes.raw("", f'<div class="shown-picture">\n{svg}\n</div>', format="html")]


class Explorer(SphinxDirective):
    """A figure in which a reader changes a plan or steps through it, by its name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The figure; Python and its script are in the folder of assets."""
        above = "../" * self.env.docname.count("/")
        assets = f"{above}_static" if runtime.is_there() else ""
        markup = exclude_from_search(explorer(self.arguments[0], assets))
        return [nodes.raw("", markup, format="html")]


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


def bring_python(app: Sphinx, failure: Exception | None) -> None:
    """Puts Python beside the assets of a site that is complete."""
    if failure is None and app.builder.format == "html" and runtime.is_there():
        runtime.bring(app.outdir / "_static")


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directives and the renderer of formulas."""
    app.add_directive("picture", Picture)
    app.add_directive("explorer", Explorer)
    app.add_directive("command-help", CommandHelp)
    app.connect("build-finished", bring_python)
    app.connect("autodoc-process-signature", shorter_signature)
    app.add_html_math_renderer("mathml", (maths, None), (maths, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
