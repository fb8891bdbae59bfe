"""The verdict on a suite: what each check of every expected record finds.

`findings` is a function of what records hold, and of nothing else.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from pydantic import BaseModel

from common.base.arrays import Weights, part
from common.chapters.suites import Suite
from common.compare.accuracy import accuracy_checks
from common.compare.checks import (
    LAYERS,
    Run,
    allowed,
    check_shapes,
    curve,
    head,
    is_long,
    numerical_checks,
)
from common.compare.collect import Answer, LoadedRecord, Reference, answer_of
from common.compare.criteria import CRITERIA
from common.compare.distances import compare
from common.compare.findings import Check, Finding, farthest, nearest_to_failing
from common.compare.planned import preset_of
from common.compare.recorded_steps import Recomputed, recompute_all
from common.compare.repeats import against, repeat_checks
from common.records.trace import minibatch_size
from common.settings.config import Config


class Comparison(BaseModel):
    """One suite of one chapter: what was computed, what it is compared with, and every check.

    `notes` say what else has to be known of the runs: on which devices or hosts they were instead
    of those that the suite asks for, and which variables that may change rounding were set. What
    some frameworks are `lacking` is why they have no such runs.
    """

    suite: str
    chapter: str
    config: Config | None
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
class Evidence:
    """What the verdict on a suite rests on.

    `found` has an entry for each expected record. `references` are what runs are compared with, by
    what they have to compute, and `recomputed` has NumPy's steps by the run's name. `alone` are
    runs on one device that other suites have, and `repeated`, by framework and number of devices,
    the runs that those of this suite repeat over hosts or on GPUs.
    """

    suite: Suite
    found: Sequence[LoadedRecord]
    references: Mapping[Answer, Reference]
    recomputed: Mapping[str, Recomputed | None] = field(default_factory=dict)
    alone: Sequence[Run] = ()
    repeated: Mapping[tuple[str, int], Run] = field(default_factory=dict)

    @property
    def runs(self) -> list[Run]:
        """The runs that can be compared."""
        return [each.run for each in self.found if each.run]


@dataclass(frozen=True)
class SuiteResult:
    """One suite: its verdict, and what it rests on."""

    comparison: Comparison
    evidence: Evidence

    @property
    def found(self) -> Sequence[LoadedRecord]:
        """The records that were expected."""
        return self.evidence.found

    def checks(self, found: LoadedRecord) -> list[Check]:
        """The checks of one run, in order."""
        who = found.framework, found.devices
        return [each for each in self.comparison.checks if (each.framework, each.devices) == who]

    def reference(self, run: Run) -> Reference:
        """What a run is compared with."""
        return self.evidence.references[answer_of(run)]


def compare_suite(
    name: str, evidence: Evidence, notes: Sequence[str], lacking: dict[str, str]
) -> SuiteResult:
    """Checks every expected record; `name` is what the suite is called."""
    suite, runs = evidence.suite, evidence.runs
    checks = [
        Check(
            suite=name,
            chapter=suite.chapter,
            framework=each.framework,
            devices=each.devices,
            **finding.model_dump(),
        )
        for each in evidence.found
        for finding in findings(each, evidence)
    ]
    numpys = any(evidence.recomputed.values())
    medians = {each.name: not (numpys and each.alone) for each in evidence.references.values()}
    compared_with = [
        *(["NumPy's step from each run's own weights"] if numpys else []),
        *(median for median, counts in medians.items() if counts),
    ]
    comparison = Comparison(
        suite=name,
        chapter=suite.chapter,
        config=runs[0].record.config if runs else None,
        compared_with=" and ".join(compared_with) or "nothing",
        checks=checks,
        notes=[*notes, *variables_set(runs)],
        lacking=lacking,
    )
    return SuiteResult(comparison, evidence)


def recomputed_of(suite: str, runs: Sequence[Run]) -> dict[str, Recomputed | None]:
    """NumPy's steps of the runs that are whole and have limits, by name."""
    whole = [run for run in runs if not check_shapes(run)[0] and allowed(run)]
    return recompute_all(whole, f"{suite}: recomputing steps")


def findings(found: LoadedRecord, evidence: Evidence) -> Iterator[Finding]:
    """What each check of one record finds: as far as it can be compared."""
    yield Finding(check="record", passed=found.run is not None, note=found.trouble)
    if found.run is None:
        return
    run, runs = found.run, [*evidence.runs, *evidence.alone]
    odd, note = check_shapes(run)
    yield Finding(check="shapes", passed=not odd, where=odd, note=note)
    if odd:
        return
    if not allowed(run):
        note = f"{run.record.config.dtype} has no tolerances yet: compare float64 runs"
        yield Finding(check="forward", passed=False, note=note)
        return
    reference = evidence.references[answer_of(run)]
    recomputed = evidence.recomputed.get(run.name)
    if len(runs) == 1 or (reference.runs == 1 and recomputed is None):
        note = "no other run is of this setting: run another framework, or other --devices"
        yield Finding(check="peers", passed=False, note=note)
    others = {} if recomputed and reference.alone else reference.arrays
    scales = recomputed.scales if recomputed else {}
    yield from layers(run, others)
    yield from numbers(run, {**others, **(recomputed.expected if recomputed else {})}, scales)
    if recomputed:
        yield steps(run, recomputed)
    if others and is_long(run) and preset_of(run.record.config):
        ours, theirs = (curve(run, arrays["losses"]) for arrays in (run.arrays, others))
        limit = CRITERIA[run.record.chapter].curve
        yield farthest("curve", "curve", compare(ours, theirs, ""), limit)
    if run.devices > 1 and run.shards is None:
        yield devices(run, runs, evidence.recomputed)
    yield from usage(run)
    repeated = evidence.repeated.get((found.framework, found.devices))
    yield from repeat_checks(evidence.suite, run, repeated, scales)
    yield from accuracy_checks(run, runs)


def numbers(run: Run, expected: Weights, scales: Mapping[str, float]) -> Iterator[Finding]:
    """How far logits, gradients, losses and weights are from what is expected, if that is known."""
    ours, theirs = head(run, run.arrays), head(run, expected)
    for name, (prefix, tolerance) in numerical_checks(run).items():
        if any(array.startswith(prefix) for array in expected):
            yield farthest(name, name, compare(ours, theirs, prefix, scales), tolerance)


def layers(run: Run, expected: Weights) -> Iterator[Finding]:
    """How far outputs of layers are from what is expected, and with which layer that begins."""
    limits, kept = allowed(run), run.record.config.options.layer_shapes()
    for name, prefix in LAYERS.items():
        if not kept or name not in limits or not part(expected, prefix):
            continue
        limit, found = limits[name].limit, compare(run.arrays, expected, prefix)
        finding = farthest(name, name, found, limits[name])
        if first := next((each for each in found if not each.far <= limit), None):
            layer = first.array.removeprefix(prefix)
            finding.note = f"{first.far:.1e} at {layer} first, at most {limit:.1e} is allowed"
        yield finding


def steps(run: Run, recomputed: Recomputed) -> Finding:
    """How far the recorded steps are from NumPy's: the quantity that comes nearest to failing."""
    worst = nearest_to_failing(
        farthest("steps", kind, found, allowed(run)[kind])
        for kind, found in recomputed.steps.items()
    )
    if recomputed.hidden and worst.passed:
        lost = ", ".join(map(str, recomputed.hidden))
        worst.note = f"rounding hides how weights moved: not compared in step {lost}"
    worst.steps, worst.hidden = len(recomputed.steps["loss"]), len(recomputed.hidden)
    return worst


def devices(run: Run, runs: Sequence[Run], recomputed: Mapping[str, Recomputed | None]) -> Finding:
    """Whether k devices computed what one did: the check that comes nearest to failing."""
    framework = run.record.framework
    alone = [each for each in runs if each.devices == 1 and each.record.framework == framework]
    if not alone or check_shapes(alone[0])[0]:
        note = "there is no run on one device to compare with"
        return Finding(check="devices", passed=False, note=note)
    ours, theirs = (
        each.as_in_float64(of) if (each := recomputed.get(of.name)) else of
        for of in (run, alone[0])
    )
    own = recomputed.get(run.name)
    return against("devices", ours, theirs, own.scales if own else {})


def usage(run: Run) -> Iterator[Finding]:
    """Whether what its first step has counted is what the plan says: integers, equal or not."""
    record = run.record
    step = record.resumed[-1].step + 1 if record.resumed else 1
    expected = record.config.usage(minibatch_size(record.config, step))
    if expected is None:
        return
    note = "" if record.split else "it has counted nothing"
    if record.split:
        for found in (record.split.counted, record.split.predicted):
            pairs = zip(asdict(found).items(), asdict(expected).values(), strict=True)
            wrong = [f"{k} are {v}, by the plan {right}" for (k, v), right in pairs if v != right]
            note = note or "".join(wrong[:1])
    yield Finding(check="plan", passed=not note, where=note, note=note)


def variables_set(runs: Sequence[Run]) -> list[str]:
    """Each variable that may change rounding, and the runs in which it was set, in words."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for name, value in run.record.environment.items():
            of_run = f"{run.record.framework} on {run.devices}"
            found.setdefault(f"{name}={value}", []).append(of_run)
    return [f"{variable} in {', '.join(where)}" for variable, where in found.items()]


def failures(verdict: Verdict) -> list[Check]:
    """Every check that failed."""
    return [c for comparison in verdict.comparisons for c in comparison.checks if not c.passed]


def title(comparison: Comparison, some: Collection[int] = ()) -> str:
    """What was compared, in a line; on all its numbers of devices, or on some."""
    counts = sorted(set(some) or {check.devices for check in comparison.checks})
    devices = ", ".join(map(str, counts))
    return f"{comparison.chapter}, {comparison.suite}, on {devices} devices"
