"""Layer by layer: where two frameworks diverge that should agree.

The runs of a suite that were made with `--layers` are compared with the exact result, if it has its
layers, else with what most of them say. The first layer that is too far off is where to look.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.base.arrays import Weights
from common.compare.checks import Run, check_shapes, median, numerical_checks
from common.compare.collect import Answer, answer_of
from common.compare.criteria import CRITERIA
from common.compare.distances import compare
from common.compare.suite import SuiteResult, title


@dataclass(frozen=True)
class Layer:
    """How far the output of one layer is from what is expected, in some runs.

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
    """The layers of the runs that must give them alike, in the order of computing."""

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
            for layer in (each for each in self.layers if each.distances[i] > each.limits[i]):
                text = (
                    f"{run.record.framework} on {run.devices} diverges at {layer.name}, "
                    f"{layer.when} training: {layer.distances[i]:.1e}, at most "
                    f"{layer.limits[i]:.1e} is allowed"
                )
                found.append(LayerDivergence(run, layer, text))
                break
        return found


def layer_tables(examined: Sequence[SuiteResult]) -> list[LayerTable]:
    """A table for each suite, and each answer, of which two runs have their layers."""
    return [table for each in examined for table in _tables(each)]


def _tables(each: SuiteResult) -> Iterator[LayerTable]:
    groups: dict[Answer, list[Run]] = {}
    for run in each.evidence.runs:
        kept = run.record.config.options.layer_shapes() and not check_shapes(run)[0]
        if kept and numerical_checks(run):
            groups.setdefault(answer_of(run), []).append(run)
    for runs in groups.values():
        reference = each.reference(runs[0])
        exact = reference.independent and any(x.startswith("layers/") for x in reference.arrays)
        if exact or len(runs) > 1:
            expected = reference.arrays if exact else median(runs)
            layers = [
                layer for when in ("before", "after") for layer in _layers(runs, expected, when)
            ]
            devices = [run.devices for run in runs]
            yield LayerTable(f"{title(each.comparison, devices)}, layer by layer", runs, layers)


def _layers(runs: Sequence[Run], expected: Weights, when: str) -> Iterator[Layer]:
    limits = [limit for run in runs if (limit := limit_of(run, when)) is not None]
    if len(limits) == len(runs):
        measured = [compare(run.arrays, expected, f"layers/{when}/") for run in runs]
        for row in zip(*measured, strict=True):
            name = row[0].array.removeprefix(f"layers/{when}/")
            yield Layer(when, name, [found.far for found in row], limits)


def limit_of(run: Run, when: str) -> float | None:
    """How far a layer of a run may be off; None where training has amplified rounding too much.

    After training it is as far off as the weights are. In float32 that can be a tenth.
    """
    dtype, checks = run.record.config.dtype, numerical_checks(run)
    if when == "before":
        return CRITERIA[run.record.chapter].layers[dtype].limit
    return checks["weights"][1].limit if dtype == "float64" and "weights" in checks else None
