"""Controls of a figure, and the answer to what a reader has chosen, as HTML."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from common.scaling.cluster import with_prefix

Choice = Mapping[str, str]
"""What a reader has chosen, by name of a control; what is missing is as at first."""

MOST: Final = 10_000
"""More steps than any figure has."""

BUTTONS: Final = "".join(
    f'<button type="button" name="{name}">{name}</button> '
    for name in ("first", "back", "next", "last", "play")
)


@dataclass(frozen=True)
class Control:
    """A list of values with their words, or a number of a range: up to `MOST` by a slider."""

    name: str
    first: Any
    options: Mapping[str, str] | range
    label: str = ""

    def slides(self) -> bool:
        return isinstance(self.options, range) and self.options[-1] == MOST

    def value(self, given: str) -> Any:
        """The value that is nearest to a text; the first one if none is near."""
        if not isinstance(self.options, range):
            return given if given in self.options else self.first
        try:
            return min(self.options[-1], max(self.options[0], round(float(given))))
        except (OverflowError, ValueError):
            return self.first

    def html(self) -> str:
        shared = f'name="{self.name}" autocomplete="off"'
        if isinstance(self.options, range):
            kind = "range" if self.slides() else "number"
            ends = f'min="{self.options[0]}" max="{self.options[-1]}"'
            first = f'value="{self.first}" data-first="{self.first}"'
            made = f'<input type="{kind}" {shared} {first} {ends}>'
        else:
            options = "".join(
                f'<option value="{value}"{" selected" * (value == self.first)}>{escape(words)}'
                "</option>"
                for value, words in self.options.items()
            )
            made = f"<select {shared}>{options}</select>"
        return f"<label>{escape(self.label or self.name)} {made}</label>"


Form = Sequence[Sequence[Control]]
"""Rows of controls."""


def select(name: str, options: Iterable[str], first: str, label: str = "") -> Control:
    """A list of values that are their own words."""
    return Control(name, first, {value: value for value in options}, label)


def slider(name: str, first: int = 0, least: int = 0) -> Control:
    """A slider that goes through steps."""
    return Control(name, first, range(least, MOST + 1))


def form_of(rows: Form) -> str:
    """The controls, and buttons that move a slider."""
    made = [" ".join(control.html() for control in row) for row in rows]
    made += [BUTTONS] * any(control.slides() for row in rows for control in row)
    return "\n".join(f'<p class="explorer-row">{row}</p>' for row in made)


def values(rows: Form, choice: Choice) -> dict[str, Any]:
    """The values of all controls."""
    return {each.name: each.value(choice.get(each.name, "")) for row in rows for each in row}


def answer(
    chosen: Mapping[str, Any],
    hidden: Iterable[str] = (),
    last: int = 0,
    **blocks: str,
) -> str:
    """What controls show, which are hidden, a slider's end, and blocks of HTML by class."""
    settled = {
        "values": {name: str(value) for name, value in chosen.items()},
        "hidden": list(hidden),
        "last": last,
    }
    made = "\n".join(_block(name, content) for name, content in blocks.items())
    return f'<div class="explorer-answer" data-settled="{escape(json.dumps(settled))}">{made}</div>'


def _block(name: str, content: str) -> str:
    more = {
        "words": ' aria-live="polite" aria-atomic="true"',
        "stage": ' tabindex="0" role="group" aria-label="Arrow keys step"',
        "scrolled": ' tabindex="0" role="group" aria-label="Table"',
    }
    attributes = more.get(name, "") + " hidden" * (not content)
    return f'<div class="explorer-{name}"{attributes}>{content}</div>'


def table(headings: Iterable[str], rows: Iterable[Sequence[str]], now: str = "") -> str:
    """A table whose rows begin with a heading; `now` is that of the row that is chosen."""
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in headings)
    body = []
    for first, *cells in rows:
        row = "".join(f"<td>{escape(each)}</td>" for each in cells)
        marked = ' aria-current="true"' * (first == now)
        body.append(f'<tr{marked}><th scope="row">{escape(first)}</th>{row}</tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def quantity(value: float, unit: str) -> str:
    """Bytes or seconds in three digits, in one piece."""
    return (with_prefix(value, unit) if value else f"0 {unit}").replace(" ", "\u00a0")
