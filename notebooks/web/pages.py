"""A chapter as one page of MyST: what frameworks share is there once, what differs is in tabs."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from common.backends.frameworks import FRAMEWORKS
from notebooks.drawing.explorers import LABELS
from notebooks.text.chapter import CHAPTERS, TEXTS, Cell, cells
from notebooks.text.notebook import Notebook
from notebooks.web.outputs import Output, block, myst, outputs
from notebooks.web.relink import relinked

SETUP: Final = "setup"
"""The cell that finds the project: readers of the page need only what it prints."""

Framework = str | None

Notebooks = Mapping[Framework, Notebook]
"""By framework, in the order of the tabs."""


@dataclass(frozen=True)
class Shown:
    """A cell with its outputs: frameworks share it if these are equal."""

    cell: Cell
    outputs: tuple[Output, ...] = ()


Column = Mapping[str, Shown]
"""One framework's cells by their ids, in their order."""


def frameworks_of(name: str) -> tuple[Framework, ...]:
    """The frameworks that have a notebook of a chapter; one None for the shared chapter."""
    return FRAMEWORKS if name in CHAPTERS else (None,)


def download_name(name: str, framework: Framework) -> str:
    """The name under which the site hands out a notebook."""
    return f"{framework}-{name}.ipynb" if framework else f"{name}.ipynb"


def page(name: str, notebooks: Notebooks) -> str:
    """The page of a chapter. Raises RunError if text, listing or output cannot be shown."""
    columns = {each: _column(name, each, found) for each, found in notebooks.items()}
    order = merged([list(column) for column in columns.values()])
    parts: list[str] = []
    for same, ids in groupby(order, lambda each: _same(each, list(columns.values()))):
        chosen = {
            framework: [column[each] for each in order if each in wanted and each in column]
            for wanted in [set(ids)]
            for framework, column in columns.items()
        }
        parts += blocks(name, *next(iter(chosen.items()))) if same else [_tabs(name, chosen)]
    return "\n\n".join(parts) + "\n"


def _column(name: str, framework: Framework, found: Notebook) -> Column:
    """The cells of a framework, with the outputs of its notebook."""
    left = {each.id: outputs(each) for each in found.cells}
    return {
        each.id: Shown(each, () if each.kind == "picture" else left.get(each.id, ()))
        for each in cells(name, framework)
    }


def merged(lists: Sequence[Sequence[str]]) -> list[str]:
    """All ids in one order that keeps to the order of each list."""
    order: list[str] = []
    for ids in lists:
        place = 0
        for each in ids:
            if each not in order:
                order.insert(place, each)
            place = order.index(each) + 1
    return order


def _same(cell: str, columns: Sequence[Column]) -> bool:
    """Whether every framework has this cell, and the same one."""
    first = columns[0].get(cell)
    return first is not None and all(column.get(cell) == first for column in columns)


def _tabs(name: str, chosen: Mapping[Framework, Sequence[Shown]]) -> str:
    """Cells that differ, in a tab for each framework that has some."""
    tabs = [
        "\n\n".join(
            [
                f"::::::{{tab-item}} {LABELS[str(framework)]}\n:sync: {framework}",
                *blocks(name, framework, shown),
                "::::::",
            ]
        )
        for framework, shown in chosen.items()
        if shown
    ]
    start = ":::::::{tab-set}\n:sync-group: framework"
    return "\n\n".join([start, *tabs, ":::::::"])


def blocks(name: str, framework: Framework, shown: Iterable[Shown]) -> Iterator[str]:
    """Cells as blocks of MyST."""
    for folded, some in groupby(shown, lambda each: each.cell.folded):
        made = [part for each in some for part in _cell(name, framework, each)]
        if folded:
            made = [":::::{dropdown} Solution", *made, ":::::"]
        yield from made


def _cell(name: str, framework: Framework, shown: Shown) -> Iterator[str]:
    cell = shown.cell
    if cell.id == SETUP:
        yield _made_with(name, framework, shown.outputs)
    elif cell.kind == "prose":
        yield relinked(cell.text, TEXTS, f"chapters/{name}")
    elif cell.kind == "picture":
        yield f"```{{picture}} {cell.text}\n```"
    elif cell.kind == "stepper":
        yield "```{explorer} rounds\n```"
    else:
        yield block("code-block", "python", cell.text)
        yield from myst(shown.outputs)


def _made_with(name: str, framework: Framework, left: Sequence[Output]) -> str:
    """A note: with what and where the notebook was run, and where to have it."""
    lines = [escaped(line) for each in left for line in each.text.splitlines()]
    download = f"{{download}}`Download the notebook <{download_name(name, framework)}>`"
    text = "\\\n".join([f"Run with {lines[0]}", *lines[1:], download])
    return f":::::{{div}} made-with\n{text}\n:::::"


def escaped(text: str) -> str:
    """Text as Markdown that shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>$|#~^])", r"\\\1", text)
