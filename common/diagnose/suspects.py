"""Which framework computes something else than the others, and what tells so."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.compare.checks import head
from common.compare.collect import LoadedRecord
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
    for result in examined:
        for found in result.found:
            if divergence := first_divergence(found, result):
                runs = groups.setdefault((found.framework, result.suite.chapter), [])
                runs.append(FailedRun(found, result, divergence))
    made = [_suspect(*who, sorted(runs, key=FailedRun.order)) for who, runs in groups.items()]
    # Where no tensor is wrong, it may be the machine that failed.
    return sorted(made, key=lambda each: (not each.tensor, each.failures[0].order()))


def _suspect(framework: str, chapter: str, failures: list[FailedRun]) -> Suspect:
    """What the arrays of the first failure tell, and whether there are runs that tell otherwise."""
    first = failures[0]
    run, shown, result = first.found.run, first.divergence, first.examined
    told, decided = [], True
    if run is not None and shown.array:
        reference = result.reference(run)
        diverged = [name for check in result.checks(first.found) for name in check.diverged]
        told = explanations(run, head(run, reference.arrays), diverged)
        others = [each for each in result.found if each.run and each.run.shards == run.shards]
        passed = [x for x in others if all(check.passed for check in result.checks(x))]
        decided = reference.independent or 2 * len(passed) > len(others)
    tensor = [*filter(None, (each.tensor for each in told)), shown.tensor or shown.array][0]
    evidence = [each.text for each in told]
    return Suspect(framework, chapter, failures, tensor, evidence, decided)
