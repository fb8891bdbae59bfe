"""Where each algorithm wins, by the size of the message and the number of devices."""

from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any, Final

from common.report.drawing import new_figure, save_svg
from common.scaling.formulas import FORMULAS, Link, seconds, winners
from common.scaling.results import Constants
from common.scaling.training_step import COUNTS, nets
from common.scaling.units import of_bytes, rate, seconds as in_words

SIZES: Final = tuple(4**power for power in range(16))
"""The entries of the messages: 4 bytes to 4 GB."""

PANELS: Final = {
    "powers of two": COUNTS,
    "between powers of two": tuple(3 * k // 4 for k in COUNTS[1:]),
}
"""Numbers of devices that can be halved to the end, and some that cannot."""

LETTERS: Final = {"halving": "H", "ring": "R", "sharded": "", "tree": "T", "star": "S"}
"""The algorithms in short; `sharded` takes as long as `ring`."""

Winners = tuple[str, ...]


def regions(counts: Sequence[int], link: Link) -> list[list[Winners]]:
    """The winners for each size (a row) and number of devices (a column)."""
    return [[fastest(k, entries, link) for k in counts] for entries in SIZES]


def fastest(k: int, entries: int, link: Link) -> Winners:
    """The fastest, and all that are as fast within 1 %."""
    best = winners({name: seconds(name, k, entries, link) for name in FORMULAS})
    return tuple(name for name in LETTERS if name in best)


def draw(constants: Constants, path: Path) -> None:
    """Draws the regions as an SVG: a letter in each cell, for colour alone may not be seen."""
    figure = new_figure(11, 6, font_size=10)
    from matplotlib.patches import Patch

    panels = {title: regions(counts, constants.link()) for title, counts in PANELS.items()}
    found = sorted({names for rows in panels.values() for row in rows for names in row})
    both = figure.subplots(1, 2, sharey=True)
    both[0].set_ylabel("size of the vector that is summed")
    for axes, (title, rows) in zip(both, panels.items(), strict=True):
        _panel(axes, rows, found)
        counts = [f"{k:,}" for k in PANELS[title]]
        axes.set_xticks(range(len(counts)), counts, rotation=60)
        axes.set(title=title, xlabel="number of devices")
        axes.set_yticks(range(len(SIZES)), map(of_bytes, SIZES))
    patches = [
        Patch(facecolor=_colour(number), label=f"{_letters(names)}: {', '.join(names)}")
        for number, names in enumerate(found)
    ]
    figure.legend(handles=patches, loc="outside lower center", ncols=3)
    figure.suptitle(
        f"SIMULATED: the fastest allreduce, and all within 1 % of it\n{_setting(constants)}"
    )
    save_svg(figure, path)


def _panel(axes: Any, rows: Sequence[Sequence[Winners]], found: Sequence[Winners]) -> None:
    for y, row in enumerate(rows):
        for x, names in enumerate(row):
            axes.bar(x, 1, 1, y - 0.5, color=_colour(found.index(names)))
            axes.text(x, y, _letters(names), ha="center", va="center", fontsize="x-small")
    for net in nets():
        height = log(net.parameters, 4)
        axes.axhline(height, color="black", linewidth=0.8, linestyle=":")
        axes.text(len(rows[0]) - 0.4, height, net.name, va="center", fontsize="small")
    axes.set(xlim=(-0.5, len(rows[0]) - 0.5), ylim=(-0.5, len(rows) - 0.5))


def _letters(names: Winners) -> str:
    return "".join(LETTERS[name] for name in names)


def _colour(number: int) -> str:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return to_hex(colormaps["Pastel1"](number))


def _setting(constants: Constants) -> str:
    """The link in words."""
    each = (
        ("latency", in_words(constants.latency.value), constants.latency.source),
        ("bandwidth", rate(constants.bandwidth.value, "B"), constants.bandwidth.source),
        ("addition", rate(constants.addition.value, "B"), constants.addition.source),
    )
    return ", ".join(f"{name} {value} ({source.split(':')[0]})" for name, value, source in each)
