"""The verdict on a suite: what each check of every expected record finds.

A check is a function of a run and of what its suite has read; `CHECKS` lists them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from statistics import fmean, median
from typing import Final

import numpy as np
from pydantic import BaseModel

from common.backends.frameworks import SAME_BITS
from common.base.arrays import Weights, part
from common.chapters.suites import Suite
from common.compare.checks import (
    LAYERS,
    NUMERICAL,
    Run,
    accuracy,
    allowed,
    check_shapes,
    curve,
    head,
    is_long,
    numerical_checks,
)
from common.compare.collect import Answer, LoadedRecord, Reference, answer_of
from common.compare.distances import Distance, compare
from common.compare.findings import Check, Finding, farthest, nearest_to_failing
from common.compare.limits import LIMITS
from common.compare.planned import preset_of
from common.compare.recorded_steps import Recomputed
from common.records.trace import minibatch_size
from common.settings.config import Config

EQUAL: Final = 1e-12
"""Accuracies whose distances from the median differ by no more are equally far from it."""


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
class SuiteResult:
    """One suite: what the verdict on it rests on, and, as `comparison`, the verdict.

    `found` has an entry for each expected record. `references` are what runs are compared with, by
    what they have to compute, and `recomputed` has NumPy's steps by the run's name. `alone` are
    runs on one device that other suites have, and `repeated`, by framework and number of devices,
    the runs that those of this suite repeat over hosts or on GPUs.
    """

    name: str
    suite: Suite
    found: Sequence[LoadedRecord]
    references: Mapping[Answer, Reference]
    recomputed: Mapping[str, Recomputed | None] = field(default_factory=dict)
    alone: Sequence[Run] = ()
    repeated: Mapping[tuple[str, int], Run] = field(default_factory=dict)
    notes: Sequence[str] = ()
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> list[Run]:
        """The runs that can be compared."""
        return [each.run for each in self.found if each.run]

    def reference(self, run: Run) -> Reference:
        """What a run is compared with."""
        return self.references[answer_of(run)]

    def others(self, run: Run) -> Weights:
        """The arrays of the reference; none where that is the run, which NumPy's steps judge."""
        reference = self.reference(run)
        return {} if self.recomputed.get(run.name) and reference.alone else reference.arrays

    def scales(self, run: Run) -> Mapping[str, float]:
        """What the distances of some gradients of a run are relative to."""
        return found.scales if (found := self.recomputed.get(run.name)) else {}

    def checks(self, found: LoadedRecord) -> list[Check]:
        """The checks of one run, in order."""
        who = found.framework, found.devices
        return [each for each in self.comparison.checks if (each.framework, each.devices) == who]

    @cached_property
    def comparison(self) -> Comparison:
        """What every check of every expected record finds."""
        chapter, runs = self.suite.chapter, self.runs
        numpys = any(self.recomputed.values())
        medians = {each.name: not (numpys and each.alone) for each in self.references.values()}
        compared_with = [
            *(["NumPy's step from each run's own weights"] if numpys else []),
            *(median for median, counts in medians.items() if counts),
        ]
        checks = [
            Check(
                suite=self.name,
                chapter=chapter,
                framework=each.framework,
                devices=each.devices,
                **finding.model_dump(),
            )
            for each in self.found
            for finding in findings(each, self)
        ]
        return Comparison(
            suite=self.name,
            chapter=chapter,
            config=runs[0].record.config if runs else None,
            compared_with=" and ".join(compared_with) or "nothing",
            checks=checks,
            notes=[*self.notes, *variables_set(runs)],
            lacking=dict(self.lacking),
        )


def findings(found: LoadedRecord, result: SuiteResult) -> Iterator[Finding]:
    """What each check of one record finds: as far as it can be compared."""
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
    for check in CHECKS:
        yield from check(found.run, result)


def peers(run: Run, result: SuiteResult) -> Iterator[Finding]:
    """Whether there is anything that the run can be compared with: only what fails is told."""
    only = len(result.runs) + len(result.alone) == 1
    if only or (result.reference(run).runs == 1 and not result.recomputed.get(run.name)):
        note = "no other run is of this setting: run another framework, or other --devices"
        yield Finding(check="peers", passed=False, note=note)


def layers(name: str, run: Run, result: SuiteResult) -> Iterator[Finding]:
    """How far outputs of layers are from what is expected, and with which layer that begins."""
    prefix, limits, expected = LAYERS[name], allowed(run), result.others(run)
    kept = run.record.config.options.layer_shapes()
    if not kept or name not in limits or not part(expected, prefix):
        return
    limit, found = limits[name].limit, compare(run.arrays, expected, prefix)
    finding = farthest(name, name, found, limits[name])
    if first := next((each for each in found if not each.far <= limit), None):
        layer = first.array.removeprefix(prefix)
        finding.note = f"{first.far:.1e} at {layer} first, at most {limit:.1e} is allowed"
    yield finding


def numbers(run: Run, result: SuiteResult) -> Iterator[Finding]:
    """How far logits, gradients, losses and weights are from what is expected, if that is known."""
    recomputed = result.recomputed.get(run.name)
    expected = {**result.others(run), **(recomputed.expected if recomputed else {})}
    ours, theirs = head(run, run.arrays), head(run, expected)
    for name, (prefix, tolerance) in numerical_checks(run).items():
        if any(array.startswith(prefix) for array in expected):
            far = compare(ours, theirs, prefix, result.scales(run))
            yield farthest(name, name, far, tolerance)


def steps(run: Run, result: SuiteResult) -> Iterator[Finding]:
    """How far the recorded steps are from NumPy's: the quantity that comes nearest to failing."""
    if not (recomputed := result.recomputed.get(run.name)):
        return
    worst = nearest_to_failing(
        farthest("steps", kind, found, allowed(run)[kind])
        for kind, found in recomputed.steps.items()
    )
    if recomputed.hidden and worst.passed:
        lost = ", ".join(map(str, recomputed.hidden))
        worst.note = f"rounding hides how weights moved: not compared in step {lost}"
    worst.steps, worst.hidden = len(recomputed.steps["loss"]), len(recomputed.hidden)
    yield worst


def curves(run: Run, result: SuiteResult) -> Iterator[Finding]:
    """How far the mean losses of a preset's epochs are from what is expected."""
    expected = result.others(run)
    if expected and is_long(run) and preset_of(run.record.config):
        ours, theirs = (curve(run, arrays["losses"]) for arrays in (run.arrays, expected))
        yield farthest(
            "curve", "curve", compare(ours, theirs, ""), LIMITS[run.record.chapter].curve
        )


def devices(run: Run, result: SuiteResult) -> Iterator[Finding]:
    """Whether k devices computed what one did: the check that comes nearest to failing."""
    if run.devices == 1 or run.shards is not None:
        return
    every, framework = [*result.runs, *result.alone], run.record.framework
    alone = [each for each in every if each.devices == 1 and each.record.framework == framework]
    if not alone or check_shapes(alone[0])[0]:
        note = "there is no run on one device to compare with"
        yield Finding(check="devices", passed=False, note=note)
        return
    ours, theirs = (
        each.as_in_float64(of) if (each := result.recomputed.get(of.name)) else of
        for of in (run, alone[0])
    )
    yield against("devices", ours, theirs, result.scales(run))


def against(check: str, run: Run, other: Run, scales: Mapping[str, float]) -> Finding:
    """How far two runs are apart that compute the same: what comes nearest to failing."""
    ours, theirs = head(run, run.arrays), head(run, other.arrays)
    return nearest_to_failing(
        farthest(check, name, compare(ours, theirs, prefix, scales), tolerance)
        for name, (prefix, tolerance) in numerical_checks(run).items()
    )


def usage(run: Run, result: SuiteResult) -> Iterator[Finding]:
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


def repeats(run: Run, result: SuiteResult) -> Iterator[Finding]:
    """Whether a run over hosts or on GPUs computed what the run that it repeats did."""
    hosts, where = result.suite.hosts.get(run.devices, 1), (run.record.framework, run.devices)
    repeated = result.repeated.get(where)
    check, place = ("hosts", "one host") if hosts > 1 else ("gpus", "as many CPU devices")
    if hosts == 1 and result.suite.kind != "gpu":
        return
    note = f"there is no run on {place} to compare with"
    if (other := _other_hosts(run, hosts)) or repeated is None:
        yield Finding(check=check, passed=False, note=other or note)
    elif hosts > 1 and run.record.chapter in SAME_BITS.get(run.record.framework, ()):
        yield _equal(run, repeated)
    else:
        yield against(check, run, repeated, result.scales(run) if hosts == 1 else {})


def _other_hosts(run: Run, hosts: int) -> str:
    """In what way a run was not over so many hosts; empty if it was.

    Where there are no hosts, processes on one take their place: one for each, or for each device.
    """
    names = _hosts(run)
    found = len(set(names))
    if hosts in (1, found) or (found == 1 and len(names) in (hosts, run.devices)):
        return ""
    processes = "1 process" if len(names) == 1 else f"{len(names)} processes"
    return f"it ran in {processes} on {found} of the {hosts} hosts that the suite asks for"


def on_one_host(suite: Suite, runs: Sequence[Run]) -> list[str]:
    """The frameworks of which some run should have been over several hosts, and was on one."""
    several = [run for run in runs if suite.hosts.get(run.devices, 1) > 1]
    return list(dict.fromkeys(r.record.framework for r in several if len(set(_hosts(r))) == 1))


def _hosts(run: Run) -> list[str]:
    """The host of each process."""
    return run.record.cluster.hosts if run.record.cluster else [""]


def _equal(run: Run, single: Run) -> Finding:
    """Whether every number of both runs is the same; -0.0 is 0.0, to which it may be added."""
    compared = [name for name in run.arrays if name.startswith(tuple(NUMERICAL.values()))]
    ours, theirs = run.arrays, single.arrays
    other = [k for k in compared if k not in theirs or not np.array_equal(ours[k], theirs[k])]
    where = f"{other[0]}: other bits" if other else ""
    return Finding(check="hosts", passed=not other, where=where, diverged=other)


def accuracies(run: Run, result: SuiteResult) -> Iterator[Finding]:
    """A run's accuracy against its floor, and its framework's against the others'.

    They are known of whole presets: one flag by hand, and an accuracy may be another.
    """
    limits, record = LIMITS[run.record.chapter], run.record
    setting = record.config.preset, record.config.dataset
    if setting not in limits.floor or preset_of(record.config) is None:
        return
    floor, ours = limits.floor[setting].limit, accuracy(record)
    yield Finding(
        check="accuracy",
        quantity="accuracy",
        passed=ours >= floor,
        distance=ours,
        tolerance=floor,
        note=f"accuracy {ours:.4f}, at least {floor} is expected",
    )
    found: dict[str, list[float]] = {}
    for each in (*result.runs, *result.alone):
        found.setdefault(each.record.framework, []).append(accuracy(each.record))
    if len(found) > 1:
        means = {framework: fmean(figures) for framework, figures in found.items()}
        far = spread(record.framework, means)
        yield farthest("spread", "spread", [far], limits.spread[setting])


def spread(framework: str, means: Mapping[str, float]) -> Distance:
    """How far the mean accuracy of `framework` is from another's, at most.

    If two are far apart, the one farther from the median answers for it, or both if they are
    equally far. So a wrong framework does not make the others look wrong.
    """
    middle = median(means.values())
    off = {name: abs(mean - middle) for name, mean in means.items()}
    gaps = {
        name: abs(mean - means[framework])
        for name, mean in means.items()
        if off[name] <= off[framework] + EQUAL
    }
    other = max(gaps, key=lambda name: gaps[name])
    where = "next to the median" if other == framework else f"from {other}"
    return Distance("accuracy", gaps[other], where)


CHECKS: Final = (
    peers,
    partial(layers, "layers"),
    numbers,
    partial(layers, "layers_after"),
    steps,
    curves,
    devices,
    usage,
    repeats,
    accuracies,
)
"""Every check of a run that is whole, in the order of the report."""


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


def title(comparison: Comparison) -> str:
    """What was compared, in a line."""
    devices = ", ".join(map(str, sorted({check.devices for check in comparison.checks})))
    return f"{comparison.chapter}, {comparison.suite}, on {devices} devices"
