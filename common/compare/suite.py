"""The verdict on a suite: every check of every expected record, passed or not."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from common.base.arrays import Weights
from common.compare.accuracy import accuracy_checks
from common.compare.checks import (
    Run,
    against,
    allowed,
    check_shapes,
    curve,
    environment_of,
    head,
    is_long,
    numerical_checks,
    usage_check,
)
from common.compare.collect import LoadedRecord, Reference
from common.compare.criteria import CRITERIA
from common.compare.distances import compare
from common.compare.findings import Check, Finding, farthest, nearest_to_failing
from common.compare.planned import preset_of
from common.compare.replay import Replay, as_float64_decides, replays
from common.records.record import DataUsed
from common.settings.config import Config

Elsewhere = Callable[[Run, Mapping[str, float]], Iterable[Finding]]
"""What there is to say of a run, and of its scales, beside runs on one host or on CPU devices."""


class Comparison(BaseModel):
    """One suite of one chapter: what was computed, what it is compared with, and every check.

    `notes` say what else has to be known of the runs: on which devices or hosts they were instead
    of those that the suite asks for, and which variables that may change rounding were set. What
    some frameworks are `lacking` is why they have no such runs.
    """

    suite: str
    chapter: str
    config: Config | None
    data: DataUsed | None
    compared_with: str
    checks: list[Check]
    notes: list[str] = []
    lacking: dict[str, str] = {}


class Verdict(BaseModel):
    """The verdict on a folder of records; `not_run` names the suites that only the grid runs."""

    passed: bool
    created: str
    comparisons: list[Comparison]
    not_run: list[str] = []


@dataclass(frozen=True)
class SuiteResult:
    """One suite: its verdict, the records that it rests on, and what they were compared with."""

    comparison: Comparison
    found: Sequence[LoadedRecord]
    references: Mapping[int | None, Reference]

    def checks(self, found: LoadedRecord) -> list[Check]:
        """The checks of one run, in order."""
        who = found.framework, found.devices
        return [each for each in self.comparison.checks if (each.framework, each.devices) == who]


def compare_suite(
    suite: str,
    chapter: str,
    found: Sequence[LoadedRecord],
    references: Mapping[int | None, Reference],
    elsewhere: Elsewhere = lambda *_: (),
    alone: Sequence[Run] = (),
) -> Comparison:
    """Checks every expected record against its reference, and its own steps against NumPy.

    `alone` are runs on one device of another suite, if this one has none.
    """
    runs = [each.run for each in found if each.run]
    sound = [run for run in runs if not check_shapes(run)[0] and allowed(run)]
    computed = replays(sound, f"{chapter}, {suite}: computing steps again")
    checks = [
        Check(
            suite=suite,
            chapter=chapter,
            framework=each.framework,
            devices=each.devices,
            **finding.model_dump(),
        )
        for each in found
        for finding in _findings(each, [*runs, *alone], references, computed, elsewhere)
    ]
    numpys = ["NumPy's step from each run's own weights"] if any(computed.values()) else []
    groups = [each for each in references.values() if not (numpys and each.alone)]
    names = dict.fromkeys(each.name for each in groups)
    return Comparison(
        suite=suite,
        chapter=chapter,
        config=runs[0].record.config if runs else None,
        data=runs[0].record.data if runs else None,
        compared_with=" and ".join([*numpys, *names]) or "nothing",
        checks=checks,
        notes=environment_of(runs),
    )


def _findings(
    found: LoadedRecord,
    runs: Sequence[Run],
    references: Mapping[int | None, Reference],
    computed: Mapping[str, Replay | None],
    elsewhere: Elsewhere,
) -> Iterator[Finding]:
    """What each check of one record found."""
    yield Finding(check="record", passed=found.run is not None, note=found.trouble)
    if found.run is None:
        return
    odd, note = check_shapes(found.run)
    yield Finding(check="shapes", passed=not odd, where=odd, note=note)
    if odd:
        return
    if not allowed(found.run):
        note = f"{found.run.record.config.dtype} has no tolerances yet: compare float64 runs"
        yield Finding(check="forward", passed=False, note=note)
        return
    reference, replayed = references[found.run.shards], computed.get(found.run.name)
    if len(runs) < 2 or (reference.runs < 2 and replayed is None):
        note = "no other run is of this setting: run another framework, or other --devices"
        yield Finding(check="peers", passed=False, note=note)
    others = {} if replayed and reference.alone else reference.arrays
    yield from _numbers(found.run, others, replayed)
    scales = replayed.scales if replayed else {}
    if found.devices > 1 and found.run.shards is None:
        yield _devices(found.run, runs, computed)
    yield from usage_check(found.run)
    yield from elsewhere(found.run, scales)
    yield from accuracy_checks(found.run, runs)


def _numbers(run: Run, others: Weights, replayed: Replay | None) -> Iterator[Finding]:
    """How far a run is from what others agree on, if there are any, and from NumPy's steps."""
    checks = numerical_checks(run)
    scales = replayed.scales if replayed else {}
    reference = {**others, **(replayed.expected if replayed else {})}
    ours, theirs = head(run, run.arrays), head(run, reference)
    for name, (prefix, tolerance) in checks.items():
        if others or any(array.startswith(prefix) for array in reference):
            yield farthest(name, name, compare(ours, theirs, prefix, scales), tolerance)
    if replayed:
        steps = {kind: each for kind, each in replayed.steps.items() if each}
        worst = nearest_to_failing(
            farthest("steps", kind, found, allowed(run)[kind]) for kind, found in steps.items()
        )
        lost = ", ".join(str(each.step) for each in replayed.hidden if not each.compared)
        if lost and worst.passed:
            worst.note = f"rounding hides how weights moved: not compared in step {lost}"
        yield worst.model_copy(update={"hidden": list(replayed.hidden)})
    if others and is_long(run) and preset_of(run.record.config):
        ours, theirs = (curve(run, arrays["losses"]) for arrays in (run.arrays, reference))
        limit = CRITERIA[run.record.chapter].curve
        yield farthest("curve", "curve", compare(ours, theirs, ""), limit)


def _devices(run: Run, runs: Sequence[Run], computed: Mapping[str, Replay | None]) -> Finding:
    """Whether k devices computed what one did: the check that comes nearest to failing."""
    framework = run.record.framework
    alone = [each for each in runs if each.devices == 1 and each.record.framework == framework]
    if not alone or check_shapes(alone[0])[0]:
        note = "there is no run on one device to compare with"
        return Finding(check="devices", passed=False, note=note)
    ours, theirs = (as_float64_decides(each, computed.get(each.name)) for each in (run, alone[0]))
    replayed = computed.get(run.name)
    return against("devices", ours, theirs, replayed.scales if replayed else {})


def failures(verdict: Verdict) -> list[Check]:
    """Every check that failed."""
    return [c for comparison in verdict.comparisons for c in comparison.checks if not c.passed]


def title(comparison: Comparison, some: Collection[int] = ()) -> str:
    """What was compared, in a line; on all its numbers of devices, or on some."""
    counts = sorted(set(some) or {check.devices for check in comparison.checks})
    devices = ", ".join(map(str, counts))
    return f"{comparison.chapter}, {comparison.suite}, on {devices} devices"
