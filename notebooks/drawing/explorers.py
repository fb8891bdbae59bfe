"""What the explorers share, figures in which a reader changes a plan: controls, and their frame.

Their scripts lie in `docs/_static`. They compute what they show as `common/parallel` does.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from common.drawing.theme import style

LABELS: Final = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX", "mxnet": "MXNet"}
"""The frameworks as they spell themselves."""

SCRIPTS: Final = ("pipelines.js", "plans.js", "runs.js", "explorer.js")
"""What every explorer loads before its own script, in this order."""


def choice(
    name: str, options: Mapping[str, str] | Sequence[str], chosen: str, label: str = ""
) -> str:
    """A list to choose from: values; in a mapping, also what they are called."""
    named = options if isinstance(options, Mapping) else {each: each for each in options}
    made = [
        f'<option value="{key}"{" selected" if key == chosen else ""}>{escape(words)}</option>'
        for key, words in named.items()
    ]
    chooser = f'<select name="{name}" autocomplete="off">{"".join(made)}</select>'
    return f'<label data-for="{name}">{escape(label or name)} {chooser}</label>'


def count(
    name: str, value: float, least: float, most: float, *, label: str = "", step: float | str = 1
) -> str:
    """A number to type, or to change by arrow keys; with a step of "any" it need not be whole."""
    field = f'<input type="number" name="{name}" value="{value}" min="{least}" max="{most}"'
    field += f' step="{step}" autocomplete="off">'
    return f'<label data-for="{name}">{escape(label or name)} {field}</label>'


def slider(name: str, value: int, most: int) -> str:
    """A slider of steps; its script gives it another end, once it knows how many there are."""
    field = f'<input type="range" name="{name}" value="{value}" min="0" max="{most}"'
    return f'<label data-for="{name}">{name} {field} autocomplete="off"></label>'


def buttons(*names: str) -> Iterator[str]:
    """The buttons of steps, and others with these names."""
    for name in ("first", "back", "next", "last", *names):
        yield f'<button type="button" name="{name}">{name}</button>'


def figure(
    name: str,
    title: str,
    assets: str,
    *,
    still: str,
    controls: Iterable[Iterable[str]],
    body: str,
    data: Mapping[str, Any] | None = None,
) -> str:
    """An explorer as HTML: `controls` in rows, words, and a `body` that its scripts fill.

    `still` is what is seen without scripts. They lie in the folder `assets`, and find `data` as
    JSON. Explorers of one page load what they share several times, which does no harm.
    """
    rows = "\n".join(f'<p class="explorer-row">{" ".join(row)}</p>' for row in controls)
    content = json.dumps(data or {}, separators=(",", ":")).replace("</", "<\\/")
    loaded = "\n".join(
        f'<script defer src="{assets}/{each}"></script>'
        for each in (*SCRIPTS, f"explore-{name}.js")
    )
    return f"""<figure class="explorer picture" id="{name}">
<style>{style()}</style>
<div class="explorer-still">
{still}
</div>
<div class="explorer-live" role="group" aria-label="{escape(title)}" hidden>
{rows}
<p class="explorer-words" aria-live="polite" aria-atomic="true"></p>
{body}
</div>
<script type="application/json">{content}</script>
{loaded}
</figure>
"""
