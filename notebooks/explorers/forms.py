"""Controls of a figure, and the answer to what a reader has chosen, as HTML."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

Choice = Mapping[str, str]
"""What a reader has chosen, by name of a control; what is missing is as at first.

A page adds `changed`, the control that was changed last, and `record`, a file's content.
"""

END: Final = 10_000
"""More steps than any figure has."""

BUTTONS: Final = "".join(
    f'<button type="button" name="{name}">{name}</button> '
    for name in ("first", "back", "next", "last", "play")
)


@dataclass(frozen=True)
class Control:
    """A list of `options` and their words, or a number between two `ends`.

    A `slider` goes through steps. It begins again if others change, but those of the `view`.
    """

    name: str
    first: Any
    options: Mapping[str, str] = field(default_factory=dict)
    ends: tuple[float, float] = (0, END)
    label: str = ""
    step: float = 1
    slider: bool = False
    view: bool = False

    def value(self, given: str) -> Any:
        """The value that is nearest to a text; the first one if none is near."""
        if self.options:
            return given if given in self.options else self.first
        try:
            number = min(self.ends[1], max(self.ends[0], float(given)))
        except ValueError:
            return self.first
        if self.step:
            number = self.ends[0] + round((number - self.ends[0]) / self.step) * self.step
        return type(self.first)(number)

    def html(self) -> str:
        shared = f'name="{self.name}" autocomplete="off"' + " data-view" * self.view
        if self.options:
            options = "".join(
                f'<option value="{value}"{" selected" * (value == self.first)}>{escape(words)}'
                "</option>"
                for value, words in self.options.items()
            )
            made = f"<select {shared}>{options}</select>"
        else:
            kind, (least, most) = "range" if self.slider else "number", self.ends
            made = (
                f'<input type="{kind}" {shared} value="{written(self.first)}" min="{least:g}" '
                f'max="{most:.0f}" step="{self.step or "any"}" data-first="{written(self.first)}">'
            )
        return f"<label>{escape(self.label or self.name)} {made}</label>"


Form = Sequence[Sequence[Control]]
"""Rows of controls."""


def select(
    name: str, options: Iterable[str], first: str, label: str = "", *, view: bool = False
) -> Control:
    """A list; options are values, or a mapping of values to words."""
    words = dict(options) if isinstance(options, Mapping) else {each: each for each in options}
    return Control(name, first, words, label=label, view=view)


def number(
    name: str, first: float, ends: tuple[float, float], label: str = "", step: float = 1
) -> Control:
    return Control(name, first, ends=ends, label=label, step=step)


def slider(name: str, first: int = 0, least: int = 0) -> Control:
    return Control(name, first, ends=(least, END), slider=True)


def written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def form_of(rows: Form) -> str:
    """The controls, and buttons that move a slider."""
    made = [" ".join(control.html() for control in row) for row in rows]
    made += [BUTTONS] * any(control.slider for row in rows for control in row)
    return "\n".join(f'<p class="explorer-row">{row}</p>' for row in made)


def values(rows: Form, choice: Choice) -> dict[str, Any]:
    """The values of all controls."""
    return {each.name: each.value(choice.get(each.name, "")) for row in rows for each in row}


def answer(
    blocks: Iterable[tuple[str, str]],
    chosen: Mapping[str, Any],
    hidden: Iterable[str] = (),
    last: int = 0,
) -> str:
    """Blocks of a class and their HTML, of which empty ones are hidden; what controls show."""
    settled = {
        "values": {name: written(value) for name, value in chosen.items()},
        "hidden": list(hidden),
        "last": last,
    }
    made = "\n".join(_block(name, content) for name, content in blocks)
    return f'<div class="explorer-answer" data-settled="{escape(json.dumps(settled))}">{made}</div>'


def _block(name: str, content: str) -> str:
    more = {
        "words": ' aria-live="polite" aria-atomic="true"',
        "stage": ' tabindex="0" role="group" aria-label="Arrow keys step"',
        "scrolled": ' tabindex="0" role="group" aria-label="Table"',
    }
    tag = "details" if name == "exact" else "div"
    attributes = more.get(name, "") + " hidden" * (not content)
    return f'<{tag} class="explorer-{name}"{attributes}>{content}</{tag}>'


def table(headings: Iterable[str], rows: Iterable[Sequence[str]], now: str = "") -> str:
    """A table whose rows begin with a heading; `now` is that of the row that is chosen."""
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in headings)
    body = []
    for first, *cells in rows:
        row = "".join(f"<td>{escape(each)}</td>" for each in cells)
        marked = ' aria-current="true"' * (first == now)
        body.append(f'<tr{marked}><th scope="row">{escape(first)}</th>{row}</tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def size(count: float) -> str:
    """Three digits of a number of bytes, of which 1000 are a KB."""
    units = ["B", "KB", "MB", "GB", "TB", "PB"]
    while count >= 999.5:
        count /= 1000
        del units[0]
    digits = str(count) if isinstance(count, int) else f"{count:#.3g}".rstrip(".")
    return f"{digits}\u00a0{units[0]}"


def counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'es' if thing.endswith('h') else 's'}" if count != 1 else f"1 {thing}"
