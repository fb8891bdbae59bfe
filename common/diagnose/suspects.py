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
    told, decided = [], True
    if run is not None and divergence.array:
        reference = examined.references[run.shards]
        diverged = [name for check in examined.checks(first.found) for name in check.diverged]
        told = explanations(run, head(run, reference.arrays), diverged)
        decided = reference.independent or _majority(run, first)
    tensors = [each.tensor for each in told if each.tensor]
    return Suspect(
        framework,
        chapter,
        failures,
        tensor=[*tensors, divergence.tensor or divergence.array][0],
        evidence=[each.text for each in told],
        decided=decided,
    )


def _majority(run: Run, failure: FailedRun) -> bool:
    """Whether most runs of the suite agree with each other in an array, and not with this one."""
    divergence = failure.divergence
    peers = [
        each.run
        for each in failure.examined.found
        if each.run and each.run.shards == run.shards and divergence.array in each.run.arrays
    ]
    limits = (
        tolerance.limit
        for prefix, tolerance in numerical_checks(run).values()
        if divergence.array.startswith(prefix)
    )
    limit, parts = next(limits, 0.0), {}
    for peer in peers:
        parts[peer.name] = peer.arrays[divergence.array][: divergence.steps or None]

    def agreeing(one: Array) -> set[str]:
        return {name for name, part in parts.items() if distance(part, one)[0] <= 2 * limit}

    camps = [agreeing(part) for part in parts.values()]
    return any(2 * len(camp) > len(peers) and run.name not in camp for camp in camps)
