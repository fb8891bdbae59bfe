"""The tables of layers, for people."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.compare.layerwise import Layer, LayerTable
from common.terminal import tables


def report_layers(found: Sequence[LayerTable], console: Console | None = None) -> bool:
    """Prints the tables, and where runs diverge; returns whether none does."""
    console = console or Console(highlight=False)
    for table in found:
        console.print(_printed(table))
        for divergence in table.divergences():
            console.print(Text(divergence.said(), style="red bold"), soft_wrap=True)
    diverged = any(divergence for table in found for divergence in table.divergences())
    if not diverged:
        agreed = f"no layer diverges: {_compared(found)}"
        console.print(Text(agreed, "green bold"), soft_wrap=True)
    return not diverged


def _compared(found: Sequence[LayerTable]) -> str:
    """Who made the same, in words, and when: no more than was compared."""
    names = dict.fromkeys(name for table in found for name in table.frameworks())
    after = all(any(layer.when == "after" for layer in table.layers) for table in found)
    times = "before and after training" if after else "before training"
    if len(names) == 1:
        return f"{next(iter(names))} makes the same of the images on all devices {times}"
    return f"{' and '.join(names)} make the same of the images {times}"


def rows(table: LayerTable) -> list[tuple[Layer, list[tuple[str, bool]]]]:
    """Each layer, and of each framework the figure of the run that is farthest off."""
    frameworks = [run.record.framework for run in table.runs]
    made = []
    for layer in table.layers:
        cells = dict.fromkeys(frameworks, ("", True))
        measured = zip(layer.distances, layer.limits, frameworks, strict=True)
        for far, limit, name in sorted(measured):
            figure = f"{far:.1e}" if math.isfinite(far) else "none"
            cells[name] = f"{figure} {'✓' if far <= limit else '✗'}", far <= limit
        made.append((layer, list(cells.values())))
    return made


def _printed(table: LayerTable) -> Table:
    made = tables.table(["layer", *table.frameworks()], title=table.title)
    before = ""
    for layer, cells in rows(table):
        if layer.when != before:
            made.add_section()
        before = layer.when
        texts = (tables.judged(*cell) for cell in cells)
        made.add_row(f"{layer.name}, {layer.when}", *texts)
    return made
