"""The figures by name: as a page has them at first, and as it asks for them later."""

import json
from collections.abc import Callable
from typing import Final, NamedTuple

from common.drawing.theme import style
from notebooks.explorers import memory, pipeline, rounds, shards
from notebooks.explorers.forms import Choice, Form, form_of


class Figure(NamedTuple):
    """Its title, its form with what stands below it, and what answers a choice."""

    title: str
    form: Form
    answer: Callable[[Choice], str]
    below: str = ""


FIGURES: Final = {
    "pipeline": Figure("A pipeline, pass by pass", pipeline.FORM, pipeline.figure, pipeline.BELOW),
    "memory": Figure("What each device keeps and sends", memory.FORM, memory.figure),
    "shards": Figure("Which device has what, moment by moment", shards.FORM, shards.figure),
    "rounds": Figure("An allreduce, round by round", rounds.FORM, rounds.figure),
}


def answer(name: str, choice: str) -> str:
    """The answer of a figure to a choice in JSON."""
    return FIGURES[name].answer(json.loads(choice))


def explorer(name: str, assets: str = "") -> str:
    """A figure as HTML, with its first answer.

    `assets` is the address of the folder that has Python and the script. Without, there is no form.
    """
    figure = FIGURES[name]
    form = script = ""
    if assets:
        form = (
            f'<div class="explorer-form" hidden>\n{form_of(figure.form)}\n{figure.below}\n'
            '<p class="explorer-status" role="status"></p></div>\n'
        )
        script = f'\n<script type="module" src="{assets}/explorer.js"></script>'
    return (
        f'<figure class="explorer picture" id="{name}">\n<style>{style()}</style>\n'
        f'<div class="explorer-live" role="group" aria-label="{figure.title}">\n'
        f"{form}{figure.answer({})}\n</div>{script}\n</figure>"
    )
