"""Which framework computes something else than the others, and what tells so."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.base.arrays import Array
from common.compare.checks import Run, head, numerical_checks
from common.compare.collect import LoadedRecord
from common.compare.distances import distance
from common.compare.suite import SuiteResult
from common.diagnose.divergence import ENDED, NEVER, Divergence, first_divergence
from common.diagnose.explanations import explanations


@dataclass(frozen=True)
class FailedRun:
    """A run that failed, and what shows first that it is wrong."""

    found: LoadedRecord
    examined: SuiteResult
    divergence: Divergence

    def order(self) -> tuple[int, bool, int]:
        """What is told first: what comes first in a run, float64 before float32, few devices."""
        run = self.found.run
        rounded = run is not None and run.record.config.dtype != "float64"
        return self.divergence.rank, rounded, self.found.devices


@dataclass(frozen=True)
class Suspect:
    """A framework whose runs of a chapter failed: the failures, the most telling one first.

    Of that one, `tensor` is what is wrong as far as the arrays tell, and `evidence` says how they
    do. `decided` is false where no majority of the runs agrees on something else.
    """

    framework: str
    chapter: str
    failures: list[FailedRun]
    tensor: str
    evidence: list[str]
    decided: bool

    @property
    def divergence(self) -> Divergence:
        """The most telling divergence."""
        return self.failures[0].divergence

    @property
    def ended(self) -> bool:
        """Whether its run failed by itself."""
        return self.divergence.rank == ENDED

    @property
    def unusable(self) -> bool:
        """Whether its record is missing, or cannot be compared."""
        return self.divergence.rank == NEVER


def suspects(examined: Sequence[SuiteResult]) -> list[Suspect]:
    """Every framework with failures, by chapter; those that diverge in a tensor come first."""
    groups: dict[tuple[str, str], list[FailedRun]] = {}
    for each in examined:
        for found in each.found:
            if divergence := first_divergence(found, each):
                key = found.framework, each.comparison.chapter
                groups.setdefault(key, []).append(FailedRun(found, each, divergence))
    made = [
        _suspect(framework, chapter, sorted(failures, key=FailedRun.order))
        for (framework, chapter), failures in groups.items()
    ]
    # Where no tensor is wrong, it may be the machine that failed.
    return sorted(made, key=lambda each: (not each.tensor, each.failures[0].order()))


def _suspect(framework: str, chapter: str, failures: list[FailedRun]) -> Suspect:
    """What is known of the framework, by the most telling of its failures."""
    first = failures[0]
    run, divergence, examined = first.found.run, first.divergence, first.examined
    told, texts, decided = [], [], True
    if run is not None and divergence.array:
        reference = examined.references[run.shards]
        diverged = [name for check in examined.checks(first.found) for name in check.diverged]
        told = explanations(run, head(run, reference.arrays), diverged)
        peers = _peers(run, first)
        decided = reference.independent or _majority(run, _camps(divergence, peers))
        alike = [each for each in peers if each.devices == run.devices]
        texts = [*_alone(first), *_agreement(_camps(divergence, alike))]
    tensors = [each.tensor for each in told if each.tensor]
    return Suspect(
        framework,
        chapter,
        failures,
        tensor=[*tensors, divergence.tensor or divergence.array][0],
        evidence=[*(each.text for each in told), *texts],
        decided=decided,
    )


def _peers(run: Run, failure: FailedRun) -> list[Run]:
    """All runs of the suite with the same reference, and an array to compare."""
    array = failure.divergence.array
    return [
        each.run
        for each in failure.examined.found
        if each.run
        and each.run.shards == run.shards
        and array in each.run.arrays
        and each.run.arrays[array].shape == run.arrays[array].shape
    ]


def _camps(divergence: Divergence, peers: Sequence[Run]) -> list[list[Run]]:
    """The runs, those together that agree with each other in the array that diverges."""
    limit = next(
        tolerance.limit
        for peer in peers
        for prefix, tolerance in numerical_checks(peer).values()
        if divergence.array.startswith(prefix)
    )

    def part(run: Run) -> Array:
        return run.arrays[divergence.array][: divergence.steps or None]

    camps: list[list[Run]] = []
    for peer in peers:
        agreeing = (x for x in camps if distance(part(peer), part(x[0]))[0] <= 2 * limit)
        if camp := next(agreeing, None):
            camp.append(peer)
        else:
            camps.append([peer])
    return camps


def _majority(run: Run, camps: Sequence[Sequence[Run]]) -> bool:
    """Whether most runs agree with each other, and not with this one."""
    others = [camp for camp in camps if all(each is not run for each in camp)]
    return any(2 * len(camp) > sum(map(len, camps)) for camp in others)


def _agreement(camps: Sequence[Sequence[Run]]) -> list[str]:
    """Which frameworks agree with each other, in a sentence."""
    if sum(map(len, camps)) < 2:
        return []
    if len(camps) == 1:
        return ["All frameworks agree with each other here, and not with the float64 runs."]
    names = [[peer.record.framework for peer in camp] for camp in camps]
    agreeing = [f"{', '.join(camp[:-1])} and {camp[-1]} agree" for camp in names if camp[1:]]
    if not agreeing:
        return ["No two frameworks agree with each other here."]
    return [f"Here {'; and '.join(agreeing)} with each other."]


def _alone(failure: FailedRun) -> list[str]:
    """Whether the same framework passes on one device, in a sentence."""
    found = [
        each
        for each in failure.examined.found
        if (each.framework, each.devices) == (failure.found.framework, 1)
    ]
    if failure.found.devices == 1 or not found:
        return []
    passed = all(check.passed for check in failure.examined.checks(found[0]))
    return ["On one device it passes: several devices are what goes wrong."] * passed
