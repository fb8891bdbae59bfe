"""Who computes something else than the others, and what tells so."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.base.arrays import Array
from common.compare.checks import Run, head, numerical_checks
from common.compare.collect import Found
from common.compare.distances import distance
from common.compare.suite import Examined
from common.diagnose.divergence import ENDED, NEVER, Sign, first_sign
from common.diagnose.explanations import hints


@dataclass(frozen=True)
class Failure:
    """A run that failed, and what shows first that it is wrong."""

    found: Found
    examined: Examined
    sign: Sign

    def order(self) -> tuple[int, bool, int]:
        """What is told first: what comes first in a run, exact before rounded, few devices."""
        run = self.found.run
        rounded = run is not None and run.record.config.dtype != "float64"
        return self.sign.rank, rounded, self.found.devices


@dataclass(frozen=True)
class Suspect:
    """A framework whose runs of a chapter failed: the failures, the most telling one first.

    Of that one, `tensor` is what is wrong as far as the arrays tell, `evidence` says how they do,
    and `values` are all frameworks' at the entry that is farthest off. `decided` is false where no
    majority of the runs agrees on something else.
    """

    framework: str
    chapter: str
    failures: list[Failure]
    tensor: str
    evidence: list[str]
    values: list[tuple[str, str]]
    decided: bool

    @property
    def sign(self) -> Sign:
        """The most telling sign."""
        return self.failures[0].sign

    @property
    def ended(self) -> bool:
        """Whether its run ended itself."""
        return self.sign.rank == ENDED

    @property
    def unusable(self) -> bool:
        """Whether its record is missing, or cannot be compared."""
        return self.sign.rank == NEVER


def suspects(examined: Sequence[Examined]) -> list[Suspect]:
    """Every framework with failures, by chapter; those that part in a tensor come first."""
    groups: dict[tuple[str, str], list[Failure]] = {}
    for each in examined:
        for found in each.found:
            if sign := first_sign(found, each):
                key = found.framework, each.comparison.chapter
                groups.setdefault(key, []).append(Failure(found, each, sign))
    made = [
        _suspect(framework, chapter, sorted(failures, key=Failure.order), examined)
        for (framework, chapter), failures in groups.items()
    ]
    # Where no tensor is wrong, it may be the machine that failed.
    return sorted(made, key=lambda each: (not each.tensor, each.failures[0].order()))


def _suspect(
    framework: str, chapter: str, failures: list[Failure], examined: Sequence[Examined]
) -> Suspect:
    """What is known of the framework, by the most telling of its failures."""
    first = failures[0]
    run, sign = first.found.run, first.sign
    peers = _peers(first)
    told, decided = [], True
    if run is not None and sign.array:
        answer = first.examined.answers[run.shards]
        checks = first.examined.checks(first.found)
        told = hints(
            run, head(run, answer.arrays), [name for each in checks for name in each.parted]
        )
        decided = answer.settled or _majority(run, _camps(first, _peers(first, alike=False)))
    return Suspect(
        framework,
        chapter,
        failures,
        next((hint.tensor for hint in told if hint.tensor), sign.tensor or sign.array),
        [*(hint.text for hint in told), *_elsewhere(first, examined), *_agreement(first, peers)],
        [(peer.record.framework, f"{_part(peer, sign)[sign.entry]:.6g}") for peer in peers],
        decided,
    )


def _peers(failure: Failure, *, alike: bool = True) -> list[Run]:
    """All runs of the suite with the same answer, if `alike` on as many devices."""
    array, run = failure.sign.array, failure.found.run
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


def _camps(failure: Failure, peers: Sequence[Run]) -> list[list[Run]]:
    """The runs, those together that agree with each other where this run parts."""
    camps: list[list[Run]] = []
    limit = next(
        tolerance.limit
        for peer in peers
        for prefix, tolerance in numerical_checks(peer).values()
        if failure.sign.array.startswith(prefix)
    )
    for peer in peers:
        for camp in camps:
            if distance(_part(peer, failure.sign), _part(camp[0], failure.sign))[0] <= 2 * limit:
                camp.append(peer)
                break
        else:
            camps.append([peer])
    return camps


def _part(run: Run, sign: Sign) -> Array:
    """The array in question; of losses, those up to the step in question."""
    array = run.arrays[sign.array]
    return array[: sign.entry[0] + 1] if sign.array == "losses" else array


def _majority(run: Run, camps: Sequence[Sequence[Run]]) -> bool:
    """Whether most runs agree with each other, and not with this one."""
    others = [camp for camp in camps if all(each is not run for each in camp)]
    return any(2 * len(camp) > sum(map(len, camps)) for camp in others)


def _agreement(failure: Failure, peers: Sequence[Run]) -> list[str]:
    """Who agrees with whom where this run parts, in a sentence."""
    if len(peers) < 2 or failure.sign.rank < 0:
        return []
    camps = [[peer.record.framework for peer in camp] for camp in _camps(failure, peers)]
    agreeing = [f"{', '.join(camp[:-1])} and {camp[-1]}" for camp in camps if len(camp) > 1]
    if len(camps) == 1:
        return ["All frameworks agree with each other here, and not with the float64 runs."]
    if not agreeing:
        return ["No two frameworks agree with each other here."]
    return [f"Here {'; and '.join(f'{each} agree' for each in agreeing)} with each other."]


def _elsewhere(failure: Failure, examined: Sequence[Examined]) -> list[str]:
    """What the same framework does on one device, and in float64."""
    found, config = failure.found, failure.examined.comparison.config
    said = []
    if found.devices > 1 and _passes(failure.examined, found.framework, 1):
        said.append("On one device it passes: several devices are what goes wrong.")
    for other in examined if failure.sign.rank >= 0 else ():
        theirs = other.comparison.config
        if config and theirs and (config.dtype, theirs.dtype) == ("float32", "float64"):
            same = theirs.mathematics() == {**config.mathematics(), "dtype": "float64"}
            if same and _passes(other, found.framework, found.devices):
                said.append("In float64 the same run passes: here it is rounding, or a kernel.")
    return said


def _passes(examined: Examined, framework: str, devices: int) -> bool:
    """Whether a run of the suite is there and passed every check."""
    for found in examined.found:
        if (found.framework, found.devices) == (framework, devices):
            return all(check.passed for check in examined.checks(found))
    return False
