"""Every check of a run, as a function of the run and of what it is compared with."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from statistics import fmean, median
from typing import Final

import numpy as np

from common.base.arrays import Weights, part
from common.compare.distances import Distance, compare
from common.compare.findings import Check, farthest, nearest_to_failing
from common.compare.limits import LIMITS
from common.compare.peers import LoadedRecord, LoadedSuite
from common.compare.recorded_steps import Recomputed
from common.compare.runs import (
    LAYERS,
    NUMERICAL,
    RecordedRun,
    final_accuracy,
    follows_preset,
    other_settings,
)
from common.models.nets import last_bias
from common.records.trace import minibatch_size


def checks_of(entry: LoadedRecord, peers: LoadedSuite) -> Iterator[Check]:
    """What each check of one record finds, as far as it can be compared."""
    run = entry.run
    yield Check(check="record", passed=run is not None, note=entry.trouble)
    if run is None:
        return
    array, note = run.wrong_array
    yield Check(check="shapes", passed=not array, where=array, note=note)
    if array:
        return
    for name, check in CHECKS.items():
        if finding := check(run, peers):
            yield finding.model_copy(update={"check": name})


def failed(note: str) -> Check:
    return Check(passed=False, note=note)


def compared(run: RecordedRun, peers: LoadedSuite) -> Check | None:
    """A failed check, if there is nothing to compare the run with."""
    only = len(peers.runs) + len(peers.alone) == 1
    if not only and (peers.others(run) or peers.steps.get(run)):
        return None
    return failed("no other run is of this setting: run another framework, or other --devices")


def arrays(name: str, run: RecordedRun, peers: LoadedSuite) -> Check | None:
    """How far arrays are from what is expected, if that is known."""
    prefix = {**NUMERICAL, **LAYERS}[name]
    ours = part(run.arrays, prefix)
    if not ours:
        return None
    expected = peers.expected(run)
    if name not in run.limits or not part(expected, prefix):
        wrong = [key for key, values in ours.items() if not np.isfinite(values).all()]
        return failed(f"NaN or infinity in {prefix}{wrong[0]}") if wrong else None
    ours, theirs = run.compared(run.arrays), run.compared(expected)
    distances = compare(ours, theirs, prefix, peers.numpys(run).scales)
    return farthest(name, distances, run.limits[name])


def steps(run: RecordedRun, peers: LoadedSuite) -> Check | None:
    """How far the recorded steps are from NumPy's; a suite proves every one that it keeps."""
    if step := left_out(run):
        note = f"{last_bias(run.record.config.shapes())} stays as it was in step {step}"
        return failed(note).model_copy(update={"step": step})
    found = peers.steps.get(run)
    if found and found.mispredicted:
        return failed(found.mispredicted)
    check = steps_of(run, found)
    if check and check.hidden and check.passed:
        suite = peers.suite
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


def curve(run: RecordedRun, peers: LoadedSuite) -> Check | None:
    """How far the mean losses of a preset's epochs are from what is expected."""
    expected = peers.others(run)
    if not (expected and run.long and follows_preset(run.record.config)):
        return None
    ours, theirs = (run.curve(losses["losses"]) for losses in (run.arrays, expected))
    return farthest("curve", compare(ours, theirs, ""), LIMITS[run.record.config.net].curve.limit)


def second_loss(run: RecordedRun, expected: Weights) -> Check | None:
    """How far a large net's second loss is from the others': it shows the first update."""
    if not expected or "second" not in run.limits or len(run.record.losses) == 1:
        return None
    ours, theirs = ({"losses": arrays["losses"][:2]} for arrays in (run.arrays, expected))
    return farthest("second", compare(ours, theirs, ""), run.limits["second"])


def devices(run: RecordedRun, peers: LoadedSuite) -> Check | None:
    """Whether k devices computed what one did: the quantity nearest to failing."""
    if run.devices == 1 or run.shards is not None:
        return None
    alone = run.counterpart((*peers.runs, *peers.alone), 1)
    if alone is None or alone.wrong_array[0]:
        return failed("there is no run on one device to compare with")
    return against(run, alone, peers)


def against(run: RecordedRun, other: RecordedRun, peers: LoadedSuite) -> Check:
    """How far two runs are apart, without flipped units: the quantity nearest to failing."""
    ours, theirs = (run.compared(peers.numpys(x).as_in_float64(x)) for x in (run, other))
    return nearest_to_failing(between(ours, theirs, run.limits, peers.numpys(run).scales))


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


def plan(run: RecordedRun, peers: LoadedSuite) -> Check | None:
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


def resumed(run: RecordedRun, peers: LoadedSuite) -> Check | None:
    """Whether a run was stopped and resumed, and has the bits of the straight run, if one is."""
    if "checkpoint_every" not in peers.suite.settings:
        return None
    if not run.record.resumed:
        return failed("it was not resumed")
    if not peers.suite.repeats or peers.suite.kind == "gpu":
        return None  # its steps are compared as those of every run
    if (repeated := run.counterpart(peers.repeated, run.devices)) is None:
        return failed("there is no straight run to compare with")
    return same_bits(run, repeated)


def gpus(run: RecordedRun, peers: LoadedSuite) -> Check | None:
    """Whether a run on GPUs computed what the run on CPU devices that it repeats did."""
    if peers.suite.kind != "gpu":
        return None
    if run.record.config.device_kind != "gpu":
        return failed("it ran on the CPU, and the suite asks for GPUs")
    if (repeated := run.counterpart(peers.repeated, run.devices)) is None:
        return failed("there is no run on as many CPU devices to compare with")
    return against(run, repeated, peers)


def accuracy(run: RecordedRun, peers: LoadedSuite) -> Check | None:
    """A run's accuracy against its floor, which is known of whole presets."""
    config = run.record.config
    limits = LIMITS[config.net].accuracies.get((config.preset, config.dataset))
    if not limits or not follows_preset(config):
        return None
    least = limits.floor.limit
    ours = final_accuracy(run.record)
    return Check(
        passed=ours >= least,
        quantity="accuracy",
        distance=ours,
        tolerance=least,
        note=f"accuracy {ours:.4f}, at least {least} is expected",
    )


def spread(run: RecordedRun, peers: LoadedSuite) -> Check | None:
    """How far the mean accuracy of a run's framework is from another's, at most.

    Of two that are far apart, the one farther from the median answers for it.
    """
    accuracies: dict[str, list[float]] = {}
    for other in (*peers.runs, *peers.alone):
        figures = accuracies.setdefault(other.record.framework, [])
        figures.append(final_accuracy(other.record))
    if not accuracy(run, peers) or len(accuracies) == 1:
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
    limit = LIMITS[config.net].accuracies[config.preset, config.dataset].spread.limit
    return farthest("spread", [Distance("accuracy", gaps[other_name], where)], limit)


CHECKS: Final[dict[str, Callable[[RecordedRun, LoadedSuite], Check | None]]] = {
    "peers": compared,
    **{name: partial(arrays, name) for name in ("layers", *NUMERICAL, "layers_after")},
    "second": lambda run, peers: second_loss(run, peers.others(run)),
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
