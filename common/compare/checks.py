"""Every check of a run, as a function of the run and of what its suite has read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from statistics import fmean, median
from typing import Final

import numpy as np

from common.base.arrays import Weights, part
from common.chapters.suites import Suite
from common.compare.collect import Answer, LoadedRecord, Reference, answer_of
from common.compare.distances import Distance, compare
from common.compare.findings import Check, Comparison, farthest, nearest_to_failing
from common.compare.limits import LIMITS
from common.compare.recorded_steps import Recomputed, recompute, recompute_all
from common.compare.runs import (
    ENDS,
    LAYERS,
    NUMERICAL,
    RecordedRun,
    final_accuracy,
    follows_preset,
    other_settings,
)
from common.records.trace import last_bias, minibatch_size


@dataclass(frozen=True)
class SuiteResult:
    """One suite: what the verdict on it rests on, and, as `comparison`, the verdict.

    `found` has an entry for each expected record, `related` the chapter's runs by suite. `examined`
    are all suites whose runs `references` rest on, this one among them.
    """

    suite: Suite
    found: Sequence[LoadedRecord]
    references: Mapping[Answer, Reference]
    related: Mapping[str, Sequence[RecordedRun]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    lacking: Mapping[str, str] = field(default_factory=dict)
    examined: Sequence["SuiteResult"] = ()

    @cached_property
    def runs(self) -> list[RecordedRun]:
        return [entry.run for entry in self.found if entry.run]

    @cached_property
    def alone(self) -> list[RecordedRun]:
        """The runs on one device that another suite has for this one."""
        return [run for run in self.related.get(self.suite.alone_in, ()) if run.devices == 1]

    @cached_property
    def recomputed(self) -> Mapping[str, Recomputed | None]:
        """NumPy's steps by run, in float32 also of those on one device."""
        alone = [run for run in self.alone if run.record.config.dtype == "float32"]
        runs = {run.name: run for run in (*alone, *self.runs)}.values()
        whole = [run for run in runs if run.tolerances and not run.wrong_array[0]]
        return recompute_all(whole)

    @cached_property
    def wrong(self) -> list[RecordedRun]:
        """The runs that have a wrong step."""
        return [run for run in self.runs if (check := steps(run, self)) and not check.passed]

    @cached_property
    def right(self) -> Mapping[Answer, Reference]:
        """The references without runs that have a wrong step."""
        wrong = [run for result in self.examined or [self] for run in result.wrong]
        return {answer: each.without(wrong) for answer, each in self.references.items()}

    @property
    def name(self) -> str:
        """The suite's; in the folder where runs go by default, only if they are as it plans."""
        suite = self.suite
        if suite.folder != ".":
            return suite.name
        configs = [run.record.config for run in self.runs]
        other = any(other_settings(config, suite.settings, suite.kind) for config in configs)
        return "own" if other else suite.name

    def reference(self, run: RecordedRun) -> Reference:
        return self.right[answer_of(run)]

    def others(self, run: RecordedRun) -> Weights:
        """The reference's arrays; none if that is the run itself."""
        reference = self.reference(run)
        only = len(reference.runs) == 1 and reference.includes(run)
        return {} if only else reference.arrays

    def expected(self, run: RecordedRun) -> Weights:
        """What a run should have computed: by NumPy's steps, else by the others."""
        if recomputed := self.recomputed.get(run.name):
            return self.others(run) | recomputed.expected
        return self.others(run)

    def repeated(self, run: RecordedRun) -> RecordedRun | None:
        """The run that a run on GPUs or after a resumption repeats."""
        who = run.record.framework, run.devices
        others = self.related.get(self.suite.repeats, ())
        return next((x for x in others if (x.record.framework, x.devices) == who), None)

    def as_in_float64(self, run: RecordedRun) -> RecordedRun:
        """The run with the first gradient that it has where rounding decides no ReLU unit."""
        recomputed = None
        if any(run is one for one in (*self.runs, *self.alone)):
            recomputed = self.recomputed.get(run.name)
        elif run.record.config.dtype == "float32" and not run.wrong_array[0]:
            # A run of another suite may have the name of one of this.
            recomputed = recompute(run)
        return recomputed.as_in_float64(run) if recomputed else run

    def scales(self, run: RecordedRun) -> Mapping[str, float]:
        """What the distances of a run's gradients are relative to."""
        recomputed = self.recomputed.get(run.name)
        return recomputed.scales if recomputed else {}

    def checks(self, entry: LoadedRecord) -> list[Check]:
        who = entry.framework, entry.devices
        checks = self.comparison.checks
        return [check for check in checks if (check.framework, check.devices) == who]

    @cached_property
    def comparison(self) -> Comparison:
        compared_with = [self.reference(run).name for run in self.runs if self.others(run)]
        if any(self.recomputed.values()):
            compared_with.insert(0, "NumPy's step from each run's own weights")
        about = {"suite": self.name, "chapter": self.suite.chapter}
        checks = []
        for entry in self.found:
            whose = {**about, "framework": entry.framework, "devices": entry.devices}
            checks += [check.model_copy(update=whose) for check in checks_of(entry, self)]
        return Comparison(
            **about,
            config=self.runs[0].record.config if self.runs else None,
            compared_with=" and ".join(dict.fromkeys(compared_with)) or "nothing",
            checks=checks,
            shown=[check for run in self.runs for check in later_distances(run, self)],
            notes=[*self.notes, *variables_set(self.runs)],
            lacking=dict(self.lacking),
        )


def checks_of(entry: LoadedRecord, result: SuiteResult) -> Iterator[Check]:
    """What each check of one record finds, as far as it can be compared."""
    run = entry.run
    yield Check(check="record", passed=run is not None, note=entry.trouble)
    if run is None:
        return
    array, note = run.wrong_array
    yield Check(check="shapes", passed=not array, where=array, note=note)
    if array:
        return
    if not run.tolerances:
        note = f"{run.record.config.dtype} has no tolerances yet: compare float64 runs"
        yield Check(check="forward", passed=False, note=note)
        return
    for name, check in CHECKS.items():
        if finding := check(run, result):
            yield finding.model_copy(update={"check": name})


def failed(note: str) -> Check:
    return Check(passed=False, note=note)


def peers(run: RecordedRun, result: SuiteResult) -> Check | None:
    """A failed check, if there is nothing to compare the run with."""
    only = len(result.runs) + len(result.alone) == 1
    if not only and (result.others(run) or result.recomputed.get(run.name)):
        return None
    return failed("no other run is of this setting: run another framework, or other --devices")


def arrays(name: str, run: RecordedRun, result: SuiteResult) -> Check | None:
    """How far arrays are from what is expected, if that is known."""
    prefix = {**NUMERICAL, **LAYERS}[name]
    ours = part(run.arrays, prefix)
    if not ours:
        return None
    expected = result.expected(run)
    if name not in run.tolerances or not part(expected, prefix):
        wrong = [key for key, values in ours.items() if not np.isfinite(values).all()]
        return failed(f"NaN or infinity in {prefix}{wrong[0]}") if wrong else None
    ours, theirs = run.compared(run.arrays), run.compared(expected)
    distances = compare(ours, theirs, prefix, result.scales(run))
    return farthest(name, distances, run.limits[name])


def steps(run: RecordedRun, result: SuiteResult) -> Check | None:
    """How far the recorded steps are from NumPy's; a suite proves every one that it keeps."""
    if step := left_out(run):
        note = f"{last_bias(run.record.config.shapes())} stays as it was in step {step}"
        return failed(note).model_copy(update={"step": step})
    recomputed = result.recomputed.get(run.name)
    if recomputed and recomputed.mispredicted:
        return failed(recomputed.mispredicted)
    check = steps_of(run, recomputed)
    if check and check.hidden and check.passed:
        suite = result.suite
        check.passed = bool(other_settings(run.record.config, suite.settings, suite.kind))
    return check


def left_out(run: RecordedRun) -> int | None:
    """The first step, counted from 1, in which the last bias should have moved, and has not."""
    rows, losses = run.arrays["trace/bias"], run.arrays["losses"]
    rates = np.array([run.learning_rate(step) for step in range(1, len(rows))])
    size = np.abs(rows[:-1]).max(axis=1)
    # Its gradient is hardly ever below a tenth of the loss; rounding may hide one of a hundredth.
    shows = rates * losses / 100 > np.finfo(rows.dtype).eps * size
    wrong = np.flatnonzero(shows & (rows[1:] == rows[:-1]).all(axis=1))
    return int(wrong[0]) + 1 if len(wrong) else None


def steps_of(run: RecordedRun, recomputed: Recomputed | None) -> Check | None:
    """How far the recorded steps are from NumPy's: the quantity nearest to failing."""
    if recomputed is None:
        return None
    worst = nearest_to_failing(
        farthest(kind, distances, run.limits[kind]) for kind, distances in recomputed.steps.items()
    )
    if recomputed.hidden and worst.passed:
        lost = ", ".join(map(str, recomputed.hidden))
        worst.note = f"rounding hides how weights moved: not compared in step {lost}"
    worst.steps = len(recomputed.steps["loss"])
    worst.hidden = len(recomputed.hidden)
    return worst


def later_distances(run: RecordedRun, result: SuiteResult) -> Iterator[Check]:
    """How far a short float32 run ends from others. It decides nothing: right runs part."""
    others = result.others(run)
    whole = run.tolerances and not run.wrong_array[0] and not run.long
    for name in ENDS if whole and run.record.config.dtype == "float32" else ():
        prefix = {**NUMERICAL, **LAYERS}[name]
        if part(run.arrays, prefix) and part(others, prefix):
            check = farthest(name, compare(run.arrays, others, prefix), None)
            yield check.model_copy(update={"framework": run.record.framework})


def curve(run: RecordedRun, result: SuiteResult) -> Check | None:
    """How far the mean losses of a preset's epochs are from what is expected."""
    expected = result.others(run)
    if not (expected and run.long and follows_preset(run.record.config)):
        return None
    ours, theirs = (run.curve(losses["losses"]) for losses in (run.arrays, expected))
    return farthest("curve", compare(ours, theirs, ""), LIMITS[run.record.chapter].curve.limit)


def second(run: RecordedRun, result: SuiteResult) -> Check | None:
    """How far a large net's second loss is from the others': it shows the first update."""
    expected = result.others(run)
    return second_loss(run, expected) if expected else None


def second_loss(run: RecordedRun, expected: Weights) -> Check | None:
    if "second" not in run.limits or len(run.record.losses) == 1:
        return None
    ours, theirs = ({"losses": arrays["losses"][:2]} for arrays in (run.arrays, expected))
    return farthest("second", compare(ours, theirs, ""), run.limits["second"])


def devices(run: RecordedRun, result: SuiteResult) -> Check | None:
    """Whether k devices computed what one did: the quantity nearest to failing."""
    if run.devices == 1 or run.shards is not None:
        return None
    framework = run.record.framework
    single = [other for other in (*result.runs, *result.alone) if other.devices == 1]
    alone = [other for other in single if other.record.framework == framework]
    if not alone or alone[0].wrong_array[0]:
        return failed("there is no run on one device to compare with")
    return against(run, alone[0], result)


def against(run: RecordedRun, other: RecordedRun, result: SuiteResult) -> Check:
    """How far two runs are apart, without flipped units: the quantity nearest to failing."""
    ours, theirs = (run.compared(result.as_in_float64(x).arrays) for x in (run, other))
    return nearest_to_failing(between(ours, theirs, run.limits, result.scales(run)))


def between(
    ours: Weights,
    theirs: Weights,
    limits: Mapping[str, float | None],
    scales: Mapping[str, float],
) -> list[Check]:
    """How far the arrays of two runs are apart; with a limit of None, they have to be finite."""
    return [
        farthest(name, compare(ours, theirs, prefix, scales), limits[name])
        for name, prefix in NUMERICAL.items()
        if name in limits
    ]


def plan(run: RecordedRun, result: SuiteResult) -> Check | None:
    """Whether the first step has counted what the plan says: integers, equal or not."""
    record = run.record
    step = record.resumed[-1].step + 1 if record.resumed else 1
    expected = record.config.usage(minibatch_size(record.config, step))
    if expected is None:
        return None
    if not record.split:
        return failed("it has counted nothing")
    planned = asdict(expected)
    for name, number in asdict(record.split.counted).items():
        if number != planned[name]:
            return failed(f"{name} are {number}, by the plan {planned[name]}")
    return Check(passed=True)


def same_bits(run: RecordedRun, repeated: RecordedRun) -> Check:
    """Whether two runs have the same bits in all that is compared."""
    theirs = repeated.arrays
    # -0.0 is 0.0, to which it may be added.
    other_bits = [
        name
        for name, values in run.arrays.items()
        if name.startswith(tuple(NUMERICAL.values()))
        if name not in theirs or not np.array_equal(values, theirs[name])
    ]
    note = f"{other_bits[0]} has other bits" if other_bits else ""
    return Check(passed=not other_bits, note=note, diverged=other_bits)


def resumed(run: RecordedRun, result: SuiteResult) -> Check | None:
    """Whether a run was stopped and resumed, and has the bits of the straight run, if one is."""
    if "checkpoint_every" not in result.suite.settings:
        return None
    if not run.record.resumed:
        return failed("it was not resumed")
    if not result.suite.repeats or result.suite.kind == "gpu":
        return None  # its steps are compared as those of every run
    if (repeated := result.repeated(run)) is None:
        return failed("there is no straight run to compare with")
    return same_bits(run, repeated)


def gpus(run: RecordedRun, result: SuiteResult) -> Check | None:
    """Whether a run on GPUs computed what the run on CPU devices that it repeats did."""
    if result.suite.kind != "gpu":
        return None
    if run.record.config.device_kind != "gpu":
        return failed("it ran on the CPU, and the suite asks for GPUs")
    if (repeated := result.repeated(run)) is None:
        return failed("there is no run on as many CPU devices to compare with")
    return against(run, repeated, result)


def accuracy(run: RecordedRun, result: SuiteResult) -> Check | None:
    """A run's accuracy against its floor, which is known of whole presets."""
    config = run.record.config
    limits = LIMITS[run.record.chapter].floor
    if (config.preset, config.dataset) not in limits or not follows_preset(config):
        return None
    least = limits[config.preset, config.dataset].limit
    ours = final_accuracy(run.record)
    return Check(
        passed=ours >= least,
        quantity="accuracy",
        distance=ours,
        tolerance=least,
        note=f"accuracy {ours:.4f}, at least {least} is expected",
    )


def spread(run: RecordedRun, result: SuiteResult) -> Check | None:
    """How far the mean accuracy of a run's framework is from another's, at most.

    Of two that are far apart, the one farther from the median answers for it.
    """
    accuracies: dict[str, list[float]] = {}
    for other in (*result.runs, *result.alone):
        figures = accuracies.setdefault(other.record.framework, [])
        figures.append(final_accuracy(other.record))
    if not accuracy(run, result) or len(accuracies) == 1:
        return None
    framework = run.record.framework
    means = {name: fmean(figures) for name, figures in accuracies.items()}
    middle = median(means.values())
    most = abs(means[framework] - middle) + 1e-12
    gaps = {
        name: abs(mean - means[framework])
        for name, mean in means.items()
        if abs(mean - middle) <= most
    }
    other_name = max(gaps, key=lambda name: gaps[name])
    where = "next to the median" if other_name == framework else f"from {other_name}"
    config = run.record.config
    limit = LIMITS[run.record.chapter].spread[config.preset, config.dataset].limit
    return farthest("spread", [Distance("accuracy", gaps[other_name], where)], limit)


CHECKS: Final[dict[str, Callable[[RecordedRun, SuiteResult], Check | None]]] = {
    "peers": peers,
    **{name: partial(arrays, name) for name in ("layers", *NUMERICAL, "layers_after")},
    "second": second,
    "steps": steps,
    "curve": curve,
    "devices": devices,
    "plan": plan,
    "gpus": gpus,
    "resumed": resumed,
    "accuracy": accuracy,
    "spread": spread,
}
"""Every check of a whole run, in the report's order; None: nothing to check."""


def variables_set(runs: Sequence[RecordedRun]) -> list[str]:
    """Each variable that may change rounding, and the runs that had it."""
    names: dict[str, list[str]] = {}
    for run in runs:
        for variable, value in run.record.environment.items():
            name = f"{run.record.framework} on {run.devices}"
            names.setdefault(f"{variable}={value}", []).append(name)
    return [f"{variable} in {', '.join(names[variable])}" for variable in names]
