"""The figures by name: as a page has them at first, and as it asks for them later."""

import json
from typing import Final

from common.drawing.theme import style
from notebooks.explorers import memory, overlap, pipeline, rounds
from notebooks.explorers.forms import form_of

FIGURES: Final = {"pipeline": pipeline, "memory": memory, "overlap": overlap, "rounds": rounds}
"""Modules with a `TITLE`, a `FORM` and a `figure`, which answers a choice; `FILE` is of a file."""


def answer(name: str, choice: str) -> str:
    """The answer of a figure to a choice in JSON."""
    return str(FIGURES[name].figure(json.loads(choice)))


def explorer(name: str, assets: str = "") -> str:
    """A figure as HTML, with its first answer.

    `assets` is the address of the folder that has Python and the script. Without, there is no form.
    """
    figure = FIGURES[name]
    form = script = ""
    if assets:
        file = getattr(figure, "FILE", "")
        form = (
            f'<div class="explorer-form" hidden>\n{form_of(figure.FORM, file)}\n'
            '<p class="explorer-status" role="status"></p></div>\n'
        )
        script = f'\n<script type="module" src="{assets}/explorer.js"></script>'
    return (
        f'<figure class="explorer picture" id="{name}">\n<style>{style()}</style>\n'
        f'<div class="explorer-live" role="group" aria-label="{figure.TITLE}">\n'
        f"{form}{figure.figure({})}\n</div>{script}\n</figure>"
    )
