"""Layer by layer: where two frameworks diverge that should agree.

The runs of a suite that were made with `--layers` are compared with the exact result, if it has its
layers, else with what most of them say. The first layer that is too far off is where to look.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.base.arrays import Weights
from common.compare.checks import Run, check_shapes, median, numerical_checks
from common.compare.criteria import CRITERIA
from common.compare.distances import compare
from common.compare.suite import SuiteResult, title


@dataclass(frozen=True)
class Layer:
    """How far what one layer makes of the images is from what is expected, in some runs.

    `when` is "before" or "after" training. `distances`, relative to the largest entry of what is
    expected, and `limits` have one for each run.
    """

    when: str
    name: str
    distances: Sequence[float]
    limits: Sequence[float]


@dataclass(frozen=True)
class LayerDivergence:
    """The first layer in which a run is too far off, and the same in words."""

    run: Run
    layer: Layer
    text: str


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
                    text = (
                        f"{run.record.framework} on {run.devices} diverges at {layer.name}, "
                        f"{layer.when} training: {layer.distances[i]:.1e}, at most "
                        f"{layer.limits[i]:.1e} is allowed"
                    )
                    found.append(LayerDivergence(run, layer, text))
                    break
        return found


def layer_tables(examined: Sequence[SuiteResult]) -> list[LayerTable]:
    """A table for each suite, and each number of shards, of which two runs have their layers."""
    return [table for each in examined for table in _tables(each)]


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
        has_layers = any(name.startswith("layers/") for name in reference.arrays)
        exact = reference.independent and has_layers
        if exact or len(runs) > 1:
            yield _table(each, runs, reference.arrays if exact else median(runs))


def _table(each: SuiteResult, runs: Sequence[Run], expected: Weights) -> LayerTable:
    layers: list[Layer] = []
    for when in ("before", "after"):
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
