"""Layer by layer: where two frameworks part that should make the same of the same images.

The runs of a suite that were made with `--layers` are compared with the exact answer, if it has its
layers, else with what most of them say. The first layer that is too far off is where to look.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.checks import Run, check_shapes, numerical_checks, reference
from common.distances import compare
from common.errors import RequestError
from common.interface import Weights
from common.tolerances import LAYERS
from common.verdict import Examined

TIMES: Final = ("before", "after")
"""When: before training and after it."""


@dataclass(frozen=True)
class Layer:
    """What one layer of some runs makes of the images, as far from what is expected as they are.

    Distances are relative to the largest entry of what is expected, one for each run; `limits`,
    too, has one for each.
    """

    when: str
    name: str
    distances: Sequence[float]
    limits: Sequence[float]

    def heading(self) -> str:
        """When and which."""
        return f"{self.name}, {self.when} training"


@dataclass(frozen=True)
class Parting:
    """The first layer in which a run is too far off."""

    run: str
    layer: Layer
    distance: float
    limit: float


@dataclass(frozen=True)
class LayerTable:
    """The layers of the runs that must make the same of them, in the order of computing."""

    title: str
    runs: Sequence[Run]
    layers: Sequence[Layer]

    def partings(self) -> list[Parting]:
        """For each run that is too far off somewhere: where that begins."""
        found = []
        for i, run in enumerate(self.runs):
            for layer in self.layers:
                if layer.distances[i] > layer.limits[i]:
                    who = f"{run.record.framework} on {run.devices}"
                    found.append(Parting(who, layer, layer.distances[i], layer.limits[i]))
                    break
        return found


def layer_tables(examined: Sequence[Examined]) -> list[LayerTable]:
    """A table for each suite, and each number of shards, of which runs have their layers.

    Raises RequestError if no two runs that are comparable have them.
    """
    tables = [table for each in examined for table in _tables(each)]
    if not tables:
        raise RequestError(
            "no two runs here have their layers: run ResNet-18 in two frameworks with --layers, "
            "such as `python -m frameworks.jax.concise --preset quick --layers`"
        )
    return tables


def report_layers(tables: Sequence[LayerTable], console: Console | None = None) -> bool:
    """Prints the tables, and where runs part; returns whether none does."""
    console = console or Console(highlight=False)
    for table in tables:
        console.print(_printed(table))
        for said in conclusions(table):
            console.print(Text(said, style="red bold"), soft_wrap=True)
    parted = any(parting for table in tables for parting in table.partings())
    if not parted:
        console.print(Text("no layer parts: all make the same of the images", "green bold"))
    return not parted


def conclusions(table: LayerTable) -> list[str]:
    """For each run that parts, where, in words."""
    return [
        f"{parting.run} parts at {parting.layer.heading()}: {parting.distance:.1e}, "
        f"at most {parting.limit:.1e} is allowed"
        for parting in table.partings()
    ]


def _tables(each: Examined) -> Iterator[LayerTable]:
    groups: dict[int | None, list[Run]] = {}
    for run in (found.run for found in each.found if found.run):
        if run.record.config.layers and check_shapes(run)[0] and numerical_checks(run):
            groups.setdefault(run.shards, []).append(run)
    for shards, runs in groups.items():
        answer = each.answers[shards]
        exact = answer.settled and any(name.startswith("layers/") for name in answer.arrays)
        if exact or len(runs) > 1:
            yield _table(each, runs, answer.arrays if exact else reference(runs))


def _table(each: Examined, runs: Sequence[Run], expected: Weights) -> LayerTable:
    layers: list[Layer] = []
    for when in TIMES:
        limits = [limit for run in runs if (limit := limit_of(run, when)) is not None]
        if len(limits) == len(runs):
            measured = [compare(run.arrays, expected, f"layers/{when}/") for run in runs]
            for row in zip(*measured, strict=True):
                name = row[0].array.removeprefix(f"layers/{when}/")
                layers.append(Layer(when, name, [found.far for found in row], limits))
    return LayerTable(
        title=f"{each.comparison.chapter}, {each.comparison.suite}, layer by layer",
        runs=runs,
        layers=layers,
    )


def limit_of(run: Run, when: str) -> float | None:
    """How far a layer of a run may be off; None where training has made too much of rounding.

    After training it is as far off as the weights are. In float32 that can be a tenth.
    """
    dtype, checks = run.record.config.dtype, numerical_checks(run)
    if when == "before":
        return LAYERS[dtype].limit
    return checks["weights"][1].limit if dtype == "float64" and "weights" in checks else None


def _printed(table: LayerTable) -> Table:
    """A row for each layer, and for each framework the run that is farthest off."""
    frameworks = [run.record.framework for run in table.runs]
    made = Table(title=table.title, title_justify="left")
    made.add_column("layer")
    for name in dict.fromkeys(frameworks):
        made.add_column(name, justify="right")
    for when in TIMES:
        made.add_section()
        for layer in (layer for layer in table.layers if layer.when == when):
            cells = {name: Text() for name in frameworks}
            measured = zip(layer.distances, layer.limits, frameworks, strict=True)
            for far, limit, name in sorted(measured):
                cells[name] = _cell(far, limit)
            made.add_row(f"{layer.name}, {when}", *cells.values())
    return made


def _cell(far: float, limit: float) -> Text:
    passed = far <= limit
    figure = f"{far:.1e}" if math.isfinite(far) else "none"
    return Text(f"{figure} {'✓' if passed else '✗'}", style="green" if passed else "red bold")
