"""Controls of a figure, and the answer to what a reader has chosen, as HTML."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

Choice = Mapping[str, str]
"""What a reader has chosen, by name of a control; what is missing is as at first.

`record` is the text of a file, and `opened` says that it is new.
"""

STEPS: Final = range(10_001)
"""The numbers of a slider: more than any figure has steps."""

BUTTONS: Final = "".join(
    f'<button type="button" name="{name}">{name}</button> '
    for name in ("first", "back", "next", "last", "play")
)


@dataclass(frozen=True)
class Control:
    """A list of values with their words, or a number of a range, `STEPS` by a slider."""

    name: str
    first: Any
    options: Mapping[str, str] | range
    label: str = ""

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
            kind = "range" if self.options == STEPS else "number"
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


def form_of(rows: Form, file: str = "") -> str:
    """The controls, buttons that move a slider, and a label's choice of a file."""
    made = [" ".join(control.html() for control in row) for row in rows]
    made += [BUTTONS] * any(control.options == STEPS for row in rows for control in row)
    made += [f'<label>{file} <input type="file" accept=".json"></label>'] * bool(file)
    return "\n".join(f'<p class="explorer-row">{row}</p>' for row in made)


def values(rows: Form, choice: Choice) -> dict[str, Any]:
    """The values of all controls."""
    return {each.name: each.value(choice.get(each.name, "")) for row in rows for each in row}


def answer(chosen: Mapping[str, Any], last: int = 0, **blocks: str) -> str:
    """What controls show, a slider's end, and blocks of HTML by class."""
    shown = {name: str(value) for name, value in chosen.items()}
    settled = {"values": shown, "last": last}
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
