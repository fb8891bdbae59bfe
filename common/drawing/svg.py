"""Pieces of SVG as text. `theme.py` has the colours of their parts; no shape has an `id`."""

from collections.abc import Iterable
from math import ceil
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from common.drawing.theme import style

SIZE: Final = 12
"""The size of text, in units, where nothing else is said."""

ENLARGED: Final = 1.25
"""CSS pixels for each unit, where there is room."""

WIDE: Final = 0.72
"""The widest that digits and signs are on average, in units of the font's size."""


Place = tuple[float, float, float, float]
"""The left and the upper edge of a rectangle, its width and its height."""


def picture(width: float, height: float, title: str, description: str, parts: Iterable[str]) -> str:
    """A picture of `width` by `height` units, on a card; words say what it shows."""
    height = ceil(height)
    size = f'width="{number(width * ENLARGED)}" height="{number(height * ENLARGED)}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" {size}'
            f' viewBox="0 0 {number(width)} {number(height)}" style="max-width:100%;height:auto"'
            f' font-size="{SIZE}" text-anchor="middle">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(description)}</desc>",
            f"<style>{escape(style())}</style>",
            rect((0.5, 0.5, width - 1, height - 1), "card", radius=10),
            *parts,
            "</svg>",
        ]
    )


def number(value: float) -> str:
    """A coordinate to a tenth of a unit."""
    return f"{value:.1f}".removesuffix(".0")


def classes(*names: str) -> str:
    """The attribute that gives a shape its parts."""
    return f"class={quoteattr(' '.join(f'pic-{name}' for name in names))}"


def rect(place: Place, part: str, *, radius: float = 3, share: float = 1) -> str:
    """A rectangle; `share` is how much of its colour it has, 0 to 1."""
    x, y, width, height = place
    at = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    opacity = "" if share == 1 else f' fill-opacity="{share:.2f}"'
    return f'<rect {classes(part)} {at} rx="{number(radius)}"{opacity}/>'


def text(
    x: float, y: float, words: str, *parts: str, size: float = SIZE, anchor: str = "middle"
) -> str:
    """A line of text with its base line at `y`; in ink where no other part is named."""
    named = f" {classes(*parts)}" if parts else ""
    named += f' font-size="{number(size)}"' if size != SIZE else ""
    named += f' text-anchor="{anchor}"' if anchor != "middle" else ""
    return f'<text{named} x="{number(x)}" y="{number(y)}">{escape(words)}</text>'


def path(data: str, *parts: str) -> str:
    return f'<path {classes(*parts)} d="{data}"/>'


def group(parts: Iterable[str], *names: str) -> str:
    return f"<g {classes(*names)}>{''.join(parts)}</g>"


def lowered(y: float, parts: Iterable[str]) -> str:
    return f'<g transform="translate(0 {number(y)})">{"".join(parts)}</g>'


def dot(x: float, y: float, part: str) -> str:
    return f'<circle {classes(part)} cx="{number(x)}" cy="{number(y)}" r="2"/>'


def box(place: Place, label: str, part: str, share: float) -> str:
    """A rectangle with a label in its middle, which is light where it is dark."""
    x, y, width, height = place
    parts = ("on-sum",) if share == 1 and part == "cell" else ()
    words = [text(x + width / 2, y + height / 2 + 4.3, label, *parts)] if label else []
    return group([rect(place, part, share=share), *words], "box")


def fits(words: str, width: float, size: float = SIZE) -> bool:
    """Whether digits and signs fit into `width` units, in any font."""
    return len(words) * WIDE * size <= width
