"""How far the frameworks' accuracies are apart, and which of them answers for it."""

from collections.abc import Iterator, Sequence
from statistics import fmean, median
from typing import Any, Final

from common.checks import Run, accuracy, accuracy_floor, measured, setting
from common.tolerances import ACCURACY_SPREAD

EQUAL: Final = 1e-12
"""Accuracies whose distances from the median differ by no more are equally far from it."""


def spread(framework: str, runs: Sequence[Run]) -> tuple[str, float]:
    """The framework whose accuracy is farthest from that of `framework`, and how far.

    Of two that are far apart the one that is farther from the median answers for it, both if they
    are equally far: so one that is wrong does not make the others look so.
    """
    means = mean_accuracies(runs)
    middle = median(means.values())
    off = {name: abs(mean - middle) for name, mean in means.items()}
    gaps = {
        name: abs(mean - means[framework])
        for name, mean in means.items()
        if off[name] <= off[framework] + EQUAL
    }
    farthest = max(gaps, key=lambda name: gaps[name])
    return farthest, gaps[farthest]


def mean_accuracies(runs: Sequence[Run]) -> dict[str, float]:
    """Each framework's accuracy, over its runs on all numbers of devices."""
    found: dict[str, list[float]] = {}
    for run in runs:
        found.setdefault(run.record.framework, []).append(accuracy(run.record))
    return {framework: fmean(accuracies) for framework, accuracies in found.items()}


def accuracy_checks(run: Run, runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """A run's accuracy against its floor, and its framework's against the others'."""
    floor = accuracy_floor(run.record)
    if floor is None:
        return
    ours = accuracy(run.record)
    yield {
        "check": "accuracy",
        "passed": ours >= floor.limit,
        "distance": ours,
        "tolerance": floor.limit,
        "note": f"accuracy {ours:.4f}, at least {floor.limit} is expected",
    }
    framework = run.record.framework
    farthest, gap = spread(framework, runs)
    where = "next to the median" if farthest == framework else f"from {farthest}"
    yield measured("spread", gap, where, ACCURACY_SPREAD[setting(run.record)])
