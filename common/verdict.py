"""The verdict on a suite: every check of every expected record, passed or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from common.accuracies import spread
from common.answers import Answer
from common.checks import (
    Check,
    Run,
    accuracy,
    accuracy_floor,
    check_shapes,
    epoch_means,
    head,
    is_long,
    numerical_checks,
    setting,
)
from common.config import Config
from common.distances import Distance, compare, distance
from common.gather import Found
from common.interface import Weights
from common.record import DataUsed
from common.tolerances import ACCURACY_SPREAD, CURVE, Tolerance
from common.training import steps_of_epochs


class Comparison(BaseModel):
    """One suite of one chapter: what was computed, what it is compared with, and every check."""

    suite: str
    chapter: str
    config: Config | None
    data: DataUsed | None
    compared_with: str
    checks: list[Check]


class Verdict(BaseModel):
    """The verdict on a folder of records."""

    passed: bool
    created: str
    comparisons: list[Comparison]


@dataclass(frozen=True)
class Examined:
    """One suite: its verdict, the records that it rests on, and what they were compared with."""

    comparison: Comparison
    found: Sequence[Found]
    answers: Mapping[int | None, Answer]

    def checks(self, found: Found) -> list[Check]:
        """The checks of one run, in order."""
        who = found.framework, found.devices
        return [each for each in self.comparison.checks if (each.framework, each.devices) == who]


def compare_suite(
    suite: str, chapter: str, found: Sequence[Found], answers: Mapping[int | None, Answer]
) -> Comparison:
    """Checks every expected record against its answer."""
    runs = [each.run for each in found if each.run]
    checks = [
        Check(suite=suite, chapter=chapter, framework=each.framework, devices=each.devices, **part)
        for each in found
        for part in _parts(each, runs, answers)
    ]
    names = dict.fromkeys(answer.name for answer in answers.values())
    return Comparison(
        suite=suite,
        chapter=chapter,
        config=runs[0].record.config if runs else None,
        data=runs[0].record.data if runs else None,
        compared_with=" and ".join(names) or "nothing",
        checks=checks,
    )


def _parts(
    found: Found, runs: Sequence[Run], answers: Mapping[int | None, Answer]
) -> Iterator[dict[str, Any]]:
    """What each check of one record found, as fields of `Check`."""
    yield {"check": "record", "passed": found.run is not None, "note": found.trouble}
    if found.run is None:
        return
    passed, note = check_shapes(found.run)
    yield {"check": "shapes", "passed": passed, "note": note}
    if not passed:
        return
    if not numerical_checks(found.run):
        note = f"{found.run.record.config.dtype} has no tolerances yet: compare float64 runs"
        yield {"check": "forward", "passed": False, "note": note}
        return
    yield from _numbers(found.run, answers[found.run.shards].arrays)
    if found.devices > 1 and found.run.shards is None:
        yield _devices(found.run, _single(found.framework, runs))
    yield from _accuracies(found.run, runs)


def _numbers(run: Run, expected: Weights) -> Iterator[dict[str, Any]]:
    ours, theirs = head(run, run.arrays), head(run, expected)
    for name, (prefix, tolerance) in numerical_checks(run).items():
        yield _farthest(name, compare(ours, theirs, prefix), tolerance)
    if is_long(run):
        steps = steps_of_epochs(run.record.config)
        curves = [epoch_means(arrays["losses"], steps) for arrays in (run.arrays, expected)]
        far, index = distance(curves[0], curves[1])
        where = f"epoch {index[0] + 1}" if index else ""
        yield _measured("curve", far, where, CURVE[run.record.chapter])


def _devices(run: Run, single: Run | None) -> dict[str, Any]:
    """Whether k devices computed what one did: the check that comes nearest to failing."""
    if single is None:
        note = "there is no run on one device to compare with"
        return {"check": "devices", "passed": False, "note": note}
    ours, theirs = head(run, run.arrays), head(run, single.arrays)
    measured = [
        _farthest("devices", compare(ours, theirs, prefix), tolerance)
        for prefix, tolerance in numerical_checks(run).values()
    ]
    return max(measured, key=lambda part: part["distance"] / part["tolerance"])


def _accuracies(run: Run, runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
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
    yield _measured("spread", gap, where, ACCURACY_SPREAD[setting(run.record)])


def _farthest(name: str, found: Sequence[Distance], tolerance: Tolerance) -> dict[str, Any]:
    worst = max(found, key=lambda each: each.far)
    parted = [each.array for each in found if not each.far <= tolerance.limit]
    return {**_measured(name, worst.far, worst.where, tolerance), "parted": parted}


def _measured(name: str, far: float, where: str, tolerance: Tolerance) -> dict[str, Any]:
    # JSON has no infinity: what cannot be compared has no distance.
    return {
        "check": name,
        "passed": far <= tolerance.limit,
        "distance": min(far, 1e308),
        "tolerance": tolerance.limit,
        "where": where,
    }


def _single(framework: str, runs: Sequence[Run]) -> Run | None:
    """The framework's run on one device, if it left what it should."""
    return next(
        (
            run
            for run in runs
            if run.devices == 1 and run.record.framework == framework and check_shapes(run)[0]
        ),
        None,
    )
