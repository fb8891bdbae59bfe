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
from common.compare.tolerances import Setting
from common.records.record import Record

EQUAL: Final = 1e-12
"""Accuracies whose distances from the median differ by no more are equally far from it."""


def spread(framework: str, runs: Sequence[Run]) -> tuple[str, float]:
    """The framework whose accuracy is farthest from that of `framework`, and how far.

    If two are far apart, the one farther from the median answers for it, or both if they are
    equally far. So a wrong framework does not make the others look wrong.
    """
    means = mean_accuracies(runs)
    middle = median(means.values())
    off = {name: abs(mean - middle) for name, mean in means.items()}
    gaps = {
        name: abs(mean - means[framework])
        for name, mean in means.items()
        if off[name] <= off[framework] + EQUAL
    }
    other = max(gaps, key=lambda name: gaps[name])
    return other, gaps[other]


def mean_accuracies(runs: Sequence[Run]) -> dict[str, float]:
    """Each framework's accuracy, over its runs on all numbers of devices."""
    found: dict[str, list[float]] = {}
    for run in runs:
        found.setdefault(run.record.framework, []).append(accuracy(run.record))
    return {framework: fmean(accuracies) for framework, accuracies in found.items()}


def accuracy_checks(run: Run, runs: Sequence[Run]) -> Iterator[Finding]:
    """A run's accuracy against its floor, and its framework's against the others'.

    They are known of whole presets: one flag by hand, and an accuracy may be another.
    """
    criteria, preset = CRITERIA[run.record.chapter], setting(run.record)
    if preset not in criteria.floor or preset_of(run.record.config) is None:
        return
    floor, ours = criteria.floor[preset], accuracy(run.record)
    yield Finding(
        check="accuracy",
        quantity="accuracy",
        passed=ours >= floor.limit,
        distance=ours,
        tolerance=floor.limit,
        note=f"accuracy {ours:.4f}, at least {floor.limit} is expected",
    )
    framework = run.record.framework
    if len(mean_accuracies(runs)) < 2:
        return
    other, gap = spread(framework, runs)
    where = "next to the median" if other == framework else f"from {other}"
    distance = Distance("accuracy", gap, where)
    yield farthest("spread", "spread", [distance], criteria.spread[preset])


def accuracy(record: Record) -> float:
    """The accuracy a run ends with; at a constant rate, of the later half of its epochs, at most 3.

    At the book's learning rate a single epoch's figure swings by several points.
    """
    settled = record.config.lr_decay == "linear"
    last = 1 if settled else min(3, math.ceil(len(record.epochs) / 2))
    return sum(epoch.test_accuracy for epoch in record.epochs[-last:]) / last


def setting(record: Record) -> Setting:
    """Where tolerances of accuracies stand: preset and data set."""
    return record.config.preset, record.data.name
