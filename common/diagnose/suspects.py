"""Which framework computes something else than the others, and what tells so."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.compare.checks import head
from common.compare.collect import LoadedRecord
from common.compare.suite import SuiteResult
from common.diagnose.divergence import ENDED, NEVER, Divergence, first_divergence
from common.diagnose.explanations import Explanation, explanations


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

    def explanations(self) -> list[Explanation]:
        """What the run's arrays tell."""
        run = self.found.run
        if run is None or not self.divergence.array:
            return []
        diverged = [x for check in self.examined.checks(self.found) for x in check.diverged]
        return explanations(run, head(run, self.examined.reference(run).arrays), diverged)

    def decided(self) -> bool:
        """Whether float64 runs, or most of the suite's runs, agree on something else."""
        run = self.found.run
        if run is None or not self.divergence.array:
            return True
        others = [
            each for each in self.examined.found if each.run and each.run.shards == run.shards
        ]
        passed = [x for x in others if all(check.passed for check in self.examined.checks(x))]
        return self.examined.reference(run).independent or 2 * len(passed) > len(others)


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
    made = []
    for (framework, chapter), runs in groups.items():
        first, *rest = sorted(runs, key=FailedRun.order)
        told, shown = first.explanations(), first.divergence
        tensors = [each.tensor for each in told if each.tensor]
        tensor = [*tensors, shown.tensor or shown.array][0]
        evidence = [each.text for each in told]
        suspect = Suspect(framework, chapter, [first, *rest], tensor, evidence, first.decided())
        made.append(suspect)
    # Where no tensor is wrong, it may be the machine that failed.
    return sorted(made, key=lambda each: (not each.tensor, each.failures[0].order()))
