"""How far the frameworks' accuracies are apart, and which of them answers for it."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, median
from typing import Final

from common.compare.checks import Run
from common.compare.criteria import CRITERIA
from common.compare.distances import Distance
from common.compare.findings import Finding, farthest
from common.compare.planned import preset_of
from common.records.record import Record

EQUAL: Final = 1e-12
"""Accuracies whose distances from the median differ by no more are equally far from it."""


def spread(framework: str, means: dict[str, float]) -> Distance:
    """How far the mean accuracy of `framework` is from another's, at most.

    If two are far apart, the one farther from the median answers for it, or both if they are
    equally far. So a wrong framework does not make the others look wrong.
    """
    middle = median(means.values())
    off = {name: abs(mean - middle) for name, mean in means.items()}
    gaps = {
        name: abs(mean - means[framework])
        for name, mean in means.items()
        if off[name] <= off[framework] + EQUAL
    }
    other = max(gaps, key=lambda name: gaps[name])
    where = "next to the median" if other == framework else f"from {other}"
    return Distance("accuracy", gaps[other], where)


def accuracy_checks(run: Run, runs: Sequence[Run]) -> Iterator[Finding]:
    """A run's accuracy against its floor, and its framework's against the others'.

    They are known of whole presets: one flag by hand, and an accuracy may be another.
    """
    criteria, record = CRITERIA[run.record.chapter], run.record
    setting = record.config.preset, record.config.dataset
    if setting not in criteria.floor or preset_of(record.config) is None:
        return
    floor, ours = criteria.floor[setting].limit, accuracy(record)
    yield Finding(
        check="accuracy",
        quantity="accuracy",
        passed=ours >= floor,
        distance=ours,
        tolerance=floor,
        note=f"accuracy {ours:.4f}, at least {floor} is expected",
    )
    found: dict[str, list[float]] = {}
    for each in runs:
        found.setdefault(each.record.framework, []).append(accuracy(each.record))
    if len(found) > 1:
        means = {framework: fmean(accuracies) for framework, accuracies in found.items()}
        far = spread(record.framework, means)
        yield farthest("spread", "spread", [far], criteria.spread[setting])


def accuracy(record: Record) -> float:
    """The accuracy a run ends with; at a constant rate, of the later half of its epochs, at most 3.

    At the book's learning rate a single epoch's figure swings by several points.
    """
    settled = record.config.lr_decay == "linear"
    last = 1 if settled else min(3, math.ceil(len(record.epochs) / 2))
    return sum(epoch.test_accuracy for epoch in record.epochs[-last:]) / last
