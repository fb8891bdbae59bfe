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
        """What is told first: what comes first in a run, exact before rounded, few devices."""
        run = self.found.run
        rounded = run is not None and run.record.config.dtype != "float64"
        return self.divergence.rank, rounded, self.found.devices


@dataclass(frozen=True)
class Suspect:
    """A framework whose runs of a chapter failed: the failures, the most telling one first.

    Of that one, `tensor` is what is wrong as far as the arrays tell, `evidence` says how they do,
    and `values` are all frameworks' at the entry that is farthest off. `decided` is false where no
    majority of the runs agrees on something else.
    """

    framework: str
    chapter: str
    failures: list[FailedRun]
    tensor: str
    evidence: list[str]
    values: list[tuple[str, str]]
    decided: bool

    @property
    def divergence(self) -> Divergence:
        """The most telling divergence."""
        return self.failures[0].divergence

    @property
    def ended(self) -> bool:
        """Whether its run ended itself."""
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
        _suspect(framework, chapter, sorted(failures, key=FailedRun.order), examined)
        for (framework, chapter), failures in groups.items()
    ]
    # Where no tensor is wrong, it may be the machine that failed.
    return sorted(made, key=lambda each: (not each.tensor, each.failures[0].order()))


def _suspect(
    framework: str, chapter: str, failures: list[FailedRun], examined: Sequence[SuiteResult]
) -> Suspect:
    """What is known of the framework, by the most telling of its failures."""
    first = failures[0]
    run, divergence = first.found.run, first.divergence
    peers = _peers(first)
    told, decided = [], True
    if run is not None and divergence.array:
        reference = first.examined.references[run.shards]
        diverged = [name for x in first.examined.checks(first.found) for name in x.diverged]
        told = explanations(run, head(run, reference.arrays), diverged)
        decided = reference.independent or _majority(run, _camps(first, _peers(first, alike=False)))
    tensors = [each.tensor for each in told if each.tensor]
    texts = [each.text for each in told]
    values = [(x.record.framework, _part(x, divergence)[divergence.entry]) for x in peers]
    return Suspect(
        framework,
        chapter,
        failures,
        tensor=[*tensors, divergence.tensor or divergence.array][0],
        evidence=[*texts, *_elsewhere(first, examined), *_agreement(first, peers)],
        values=[(name, f"{value:.6g}") for name, value in values],
        decided=decided,
    )


def _peers(failure: FailedRun, *, alike: bool = True) -> list[Run]:
    """All runs of the suite with the same reference, if `alike` on as many devices."""
    array, run = failure.divergence.array, failure.found.run
    if run is None or not array:
        return []
    return [
        each.run
        for each in failure.examined.found
        if each.run
        and each.run.shards == run.shards
        and (each.devices == failure.found.devices or not alike)
        and array in each.run.arrays
        and each.run.arrays[array].shape == run.arrays[array].shape
    ]


def _camps(failure: FailedRun, peers: Sequence[Run]) -> list[list[Run]]:
    """The runs, those together that agree with each other where this run diverges."""
    camps: list[list[Run]] = []
    limit = next(
        tolerance.limit
        for peer in peers
        for prefix, tolerance in numerical_checks(peer).values()
        if failure.divergence.array.startswith(prefix)
    )
    for peer in peers:
        ours = _part(peer, failure.divergence)
        for camp in camps:
            if distance(ours, _part(camp[0], failure.divergence))[0] <= 2 * limit:
                camp.append(peer)
                break
        else:
            camps.append([peer])
    return camps


def _part(run: Run, divergence: Divergence) -> Array:
    """The array in question; of losses, those up to the step in question."""
    array = run.arrays[divergence.array]
    return array[: divergence.entry[0] + 1] if divergence.array == "losses" else array


def _majority(run: Run, camps: Sequence[Sequence[Run]]) -> bool:
    """Whether most runs agree with each other, and not with this one."""
    others = [camp for camp in camps if all(each is not run for each in camp)]
    return any(2 * len(camp) > sum(map(len, camps)) for camp in others)


def _agreement(failure: FailedRun, peers: Sequence[Run]) -> list[str]:
    """Which frameworks agree where this run diverges, in a sentence."""
    if len(peers) < 2 or failure.divergence.rank < 0:
        return []
    camps = [[peer.record.framework for peer in camp] for camp in _camps(failure, peers)]
    agreeing = [f"{', '.join(camp[:-1])} and {camp[-1]}" for camp in camps if len(camp) > 1]
    if len(camps) == 1:
        return ["All frameworks agree with each other here, and not with the float64 runs."]
    if not agreeing:
        return ["No two frameworks agree with each other here."]
    return [f"Here {'; and '.join(f'{each} agree' for each in agreeing)} with each other."]


def _elsewhere(failure: FailedRun, examined: Sequence[SuiteResult]) -> list[str]:
    """What the same framework does on one device, and in float64."""
    found, config = failure.found, failure.examined.comparison.config
    said = []
    if found.devices > 1 and _passes(failure.examined, found.framework, 1):
        said.append("On one device it passes: several devices are what goes wrong.")
    for other in examined if failure.divergence.rank >= 0 else ():
        theirs = other.comparison.config
        if config and theirs and (config.dtype, theirs.dtype) == ("float32", "float64"):
            same = theirs.numerics() == {**config.numerics(), "dtype": "float64"}
            if same and _passes(other, found.framework, found.devices):
                said.append("In float64 the same run passes: here it is rounding, or a kernel.")
    return said


def _passes(examined: SuiteResult, framework: str, devices: int) -> bool:
    """Whether a run of the suite is there and passed every check."""
    found = [x for x in examined.found if (x.framework, x.devices) == (framework, devices)]
    return bool(found) and all(check.passed for check in examined.checks(found[0]))
