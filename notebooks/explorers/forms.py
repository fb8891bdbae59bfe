"""Controls of a figure, and the answer to what a reader has chosen, as HTML."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from common.drawing.plans import TITLES

Choice = Mapping[str, str]
"""What a reader has chosen, by name of a control; what is missing is as at first.

`record` is the text of a file, and `opened` says that it is new.
"""

STEPS: Final = range(10_001)
"""The numbers of a slider: more than any figure has steps."""

ATTRIBUTES: Final = {
    "words": ' aria-live="polite" aria-atomic="true"',
    "stage": ' tabindex="0" role="group" aria-label="Arrow keys step"',
    "scrolled": ' tabindex="0" role="group" aria-label="Table"',
}
"""Of blocks, by their class."""

BUTTONS: Final = "".join(
    f'<button type="button" name="{name}">{name}</button> '
    for name in ("first", "back", "next", "last", "play")
)


@dataclass(frozen=True)
class Control:
    """A list of values, or a number of a range, `STEPS` by a slider."""

    name: str
    first: Any
    options: Collection[str] | range
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
            options = ""
            for value in self.options:
                selected = " selected" * (value == self.first)
                words = TITLES.get(value, value)
                options += f'<option value="{value}"{selected}>{words}</option>'
            made = f"<select {shared}>{options}</select>"
        return f"<label>{self.label or self.name} {made}</label>"


Form = Sequence[Sequence[Control]]
"""Rows of controls."""


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
    settled = escape(json.dumps({"values": shown, "last": last}))
    made = "\n".join(
        f'<div class="explorer-{name}"{ATTRIBUTES.get(name, "")}{" hidden" * (not content)}>'
        f"{content}</div>"
        for name, content in blocks.items()
    )
    return f'<div class="explorer-answer" data-settled="{settled}">{made}</div>'
