"""Tables, on a terminal and in Markdown: what names a row stands left, figures right. And lists."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.table import Table

Cell = tuple[str, bool | None]
"""A text, and whether it has passed; None: there was nothing to pass."""

STYLES: Final = {True: "green", False: "red bold", None: "dim"}


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str | Cell]] = (),
    *,
    title: str | None = None,
    caption: str | None = None,
    left: Collection[int] = (0,),
) -> "Table":
    """A table; the columns in `left`, counted from 0, hold words."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=title, caption=caption, title_justify="left")
    for number, heading in enumerate(headings):
        if number in left:
            grid.add_column(heading, overflow="fold")
        else:
            grid.add_column(heading, justify="right")
    for row in rows:
        grid.add_row(*(Text(x) if isinstance(x, str) else Text(x[0], STYLES[x[1]]) for x in row))
    return grid


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows)]


def listed(items: Sequence[object]) -> str:
    """Items in a sentence: 0, 1 and 2."""
    texts = list(map(str, items))
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
