"""Layer by layer: where two frameworks diverge that should agree.

The runs of a suite that were made with `--layers` are compared with the exact result, if it has its
layers, else with what most of them say. The first layer that is too far off is where to look.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from common.base.arrays import Weights
from common.base.errors import RequestError
from common.compare.checks import Run, check_shapes, median, numerical_checks
from common.compare.criteria import CRITERIA
from common.compare.distances import compare
from common.compare.suite import SuiteResult, title

TIMES: Final = ("before", "after")
"""When: before training and after it."""


@dataclass(frozen=True)
class Layer:
    """How far what one layer makes of the images is from what is expected, in some runs.

    `distances` has one for each run, relative to the largest entry of what is expected; `limits`
    has one for each run, too.
    """

    when: str
    name: str
    distances: Sequence[float]
    limits: Sequence[float]


@dataclass(frozen=True)
class LayerDivergence:
    """The first layer in which a run is too far off."""

    run: Run
    layer: Layer
    distance: float
    limit: float

    def said(self) -> str:
        """Who diverges where, in words."""
        return (
            f"{self.run.record.framework} on {self.run.devices} diverges at {self.layer.name}, "
            f"{self.layer.when} training: {self.distance:.1e}, at most {self.limit:.1e} is allowed"
        )


@dataclass(frozen=True)
class LayerTable:
    """The layers of the runs that must make the same of them, in the order of computing."""

    title: str
    runs: Sequence[Run]
    layers: Sequence[Layer]

    def frameworks(self) -> list[str]:
        """The frameworks of the runs, each once."""
        return list(dict.fromkeys(run.record.framework for run in self.runs))

    def divergences(self) -> list[LayerDivergence]:
        """For each run that is too far off somewhere: where that begins."""
        found = []
        for i, run in enumerate(self.runs):
            for layer in self.layers:
                if layer.distances[i] > layer.limits[i]:
                    found.append(LayerDivergence(run, layer, layer.distances[i], layer.limits[i]))
                    break
        return found


def layer_tables(examined: Sequence[SuiteResult]) -> list[LayerTable]:
    """A table for each suite, and each number of shards, of which two runs have their layers."""
    return [table for each in examined for table in _tables(each)]


def require_layers(tables: Sequence[LayerTable]) -> None:
    """Raises RequestError if there is nothing to compare."""
    if not tables:
        raise RequestError(
            "no two runs here have their layers: run ResNet-18 in two frameworks with --layers, "
            "such as `python -m frameworks.jax.concise --preset quick --layers`"
        )


def _tables(each: SuiteResult) -> Iterator[LayerTable]:
    groups: dict[int | None, list[Run]] = {}
    for run in (found.run for found in each.found if found.run):
        if (
            run.record.config.options.layer_shapes()
            and not check_shapes(run)[0]
            and numerical_checks(run)
        ):
            groups.setdefault(run.shards, []).append(run)
    for shards, runs in groups.items():
        reference = each.references[shards]
        exact = reference.independent and any(
            name.startswith("layers/") for name in reference.arrays
        )
        if exact or len(runs) > 1:
            yield _table(each, runs, reference.arrays if exact else median(runs))


def _table(each: SuiteResult, runs: Sequence[Run], expected: Weights) -> LayerTable:
    layers: list[Layer] = []
    for when in TIMES:
        limits = [limit for run in runs if (limit := limit_of(run, when)) is not None]
        if len(limits) == len(runs):
            measured = [compare(run.arrays, expected, f"layers/{when}/") for run in runs]
            for row in zip(*measured, strict=True):
                name = row[0].array.removeprefix(f"layers/{when}/")
                layers.append(Layer(when, name, [found.far for found in row], limits))
    return LayerTable(
        title=f"{title(each.comparison, [run.devices for run in runs])}, layer by layer",
        runs=runs,
        layers=layers,
    )


def limit_of(run: Run, when: str) -> float | None:
    """How far a layer of a run may be off; None where training has made too much of rounding.

    After training it is as far off as the weights are. In float32 that can be a tenth.
    """
    dtype, checks = run.record.config.dtype, numerical_checks(run)
    if when == "before":
        return CRITERIA[run.record.chapter].layers[dtype].limit
    return checks["weights"][1].limit if dtype == "float64" and "weights" in checks else None
