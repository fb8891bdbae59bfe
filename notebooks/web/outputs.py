"""What the cells of a notebook left, as MyST: text in a box of its own, pictures as they are."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from common.base.errors import RunError

COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""What a terminal takes for a colour."""

MARKUP: Final = ("image/svg+xml", "text/html")
"""Kinds of output that stand in the page as they are: they come from the project's own code."""


@dataclass(frozen=True)
class Output:
    """Text as a program prints it, or markup of a page."""

    kind: Literal["text", "markup"]
    text: str


def outputs(cell: Any) -> tuple[Output, ...]:
    """What a cell of a notebook left, without what shows nothing; text that follows text is one.

    Raises RunError if the site cannot show it.
    """
    found: list[Output] = []
    for each in cell.get("outputs", []):
        new = _output(each, cell.id)
        if found and found[-1].kind == new.kind == "text":
            new = Output("text", found.pop().text + new.text)
        if new.text.strip():
            found.append(new)
    return tuple(found)


def _output(output: Any, cell: str) -> Output:
    if output.output_type == "stream":
        return Output("text", COLOURS.sub("", output.text))
    data = output.data
    for kind in MARKUP:
        if kind in data:
            return Output("markup", data[kind])
    if "text/plain" not in data:
        raise RunError(f"cell {cell} shows {', '.join(data)}, which the site cannot show")
    return Output("text", COLOURS.sub("", data["text/plain"]) + "\n")


def block(directive: str, argument: str, text: str, *options: str) -> str:
    """A block of MyST, with a fence that is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    head = [f"{fence}{{{directive}}} {argument}", *options, *([""] if options else [])]
    return "\n".join([*head, text, fence])


def unsearched(markup: str) -> str:
    """Markup in whose style sheets, data and titles the search marks no words it has found."""
    return re.sub(r"<(style|script|title|desc)(?=[ >])", r'<\1 class="nohighlight"', markup)


def myst(found: Iterable[Output]) -> Iterator[str]:
    """Outputs as blocks of MyST."""
    for each in found:
        if each.kind == "text":
            yield block("code-block", "text", each.text.rstrip("\n"), ":class: output")
        else:
            # Raw HTML may have no empty lines at its ends, nor need any inside.
            lines = [line for line in unsearched(each.text).splitlines() if line.strip()]
            yield block("raw", "html", "\n".join(['<div class="output">', *lines, "</div>"]))
