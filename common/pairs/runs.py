"""Compares two files: runs, as a suite does, or weights."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RequestError, RunError
from common.compare.checks import between, second_loss, steps_of
from common.compare.distances import compare, first_beyond
from common.compare.findings import farthest
from common.compare.folder import recorded_run
from common.compare.limits import LIMITS
from common.compare.recorded_steps import recompute
from common.compare.runs import NUMERICAL, RecordedRun, identity
from common.models.weights_file import INDEX, bfloat16_note, load_arrays
from common.pairs.arrays import PairVerdict, compare_arrays, joined
from common.records.record import Record, read_record, source_digest
from common.records.trace import expected_arrays


def compare_files(first: Path, second: Path, tolerance: float | None) -> PairVerdict:
    """The verdict on two records or files of weights. Raises RequestError or RunError."""
    paths = first, second
    kinds = {".safetensors" if p.name.endswith(INDEX) else p.suffix.lower() for p in paths}
    if kinds == {".json"}:
        return compare_runs(read_run(first), read_run(second), tolerance)
    if kinds == {".safetensors"}:
        verdict = compare_arrays(load_arrays(first), load_arrays(second), tolerance)
        notes = [bfloat16_note(path) for path in paths]
        return replace(verdict, notes=list(filter(None, notes)))
    advice = "give two records (.json) or two files of weights (.safetensors)"
    raise RequestError(f"{first} and {second} are not of the same kind: {advice}")


def read_run(path: Path) -> RecordedRun:
    """A run, arrays in the net's order. Raises RunError if it cannot be trusted."""
    run = recorded_run(path, read_record(path))
    compared = tuple(NUMERICAL.values())
    names = [name for name in expected_arrays(run.record) if name.startswith(compared)]
    if lacking := [name for name in names if name not in run.arrays]:
        raise RunError(f"its tensors lack {lacking[0]} ({path})")
    return RecordedRun(run.record, {name: run.arrays[name] for name in names} | run.arrays)


def compare_runs(
    ours: RecordedRun, expected: RecordedRun, tolerance: float | None = None
) -> PairVerdict:
    """The verdict on two runs of one setting, by the checks of a suite.

    Raises RequestError if one has resumed from the other, or both from one, and RunError if steps
    are to be recomputed, but arrays are not those that this code keeps.
    """
    if shared := shared_steps(ours.record, expected.record):
        what = f"not comparable: one run has trained steps 1 to {shared:,} of both"
        raise RequestError(f"{what}; run one of them from step 1")
    notes = [*facts("first", ours.record), *facts("second", expected.record)]
    if differences := other_setting(ours.record, expected.record):
        return PairVerdict([], notes, differences)
    # A float32 run differs from a float64 run by its own rounding.
    coarser = expected if expected.record.config.dtype == "float32" else ours
    rounded = tolerance is None and coarser.record.config.dtype == "float32"
    steps = [recompute(whole(run)) if rounded else None for run in (ours, expected)]
    runs = zip((ours, expected), steps, strict=True)
    arrays = [found.as_in_float64(run) if found else run.arrays for run, found in runs]
    limits = dict.fromkeys(NUMERICAL, tolerance)
    if tolerance is None:
        limits |= {name: coarser.limits.get(name) for name in NUMERICAL}
        arrays = [coarser.compared(each) for each in arrays]
    checks = between(arrays[0], arrays[1], limits, steps[1].scales if steps[1] else {})
    for check in checks:
        if not check.passed and check.distance is not None and check.check == "trajectory":
            losses = [both["losses"] for both in arrays]
            step = first_beyond(losses[0], losses[1], check.tolerance or 0.0)
            check.note = f"first at step {step}"
        elif len(check.diverged) > 1:
            check.note = f"{len(check.diverged)} arrays diverge, first {check.diverged[0]}"
    for which, run, found in zip(("first", "second"), (ours, expected), steps, strict=True):
        if worst := steps_of(run, found):
            note = joined(f"of the {which}", worst.note)
            checks.append(worst.model_copy(update={"check": "steps", "note": note}))
    other = ours if coarser is expected else expected
    if rounded and (second := second_loss(coarser, other.arrays)):
        checks.append(second)
    if tolerance is None and coarser.long:
        curve, right = (run.curve(run.arrays["losses"]) for run in (ours, expected))
        # Two right runs could be two limits apart.
        limit = 2 * LIMITS[coarser.record.config.net].curve.limit
        checks.append(farthest("curve", compare(curve, right, ""), limit))
    return PairVerdict(checks, notes)


def whole(run: RecordedRun) -> RecordedRun:
    """A run with all arrays that this code keeps. Raises RunError if it has others."""
    array, note = run.wrong_array
    if array:
        raise RunError(f"{run.name} cannot be compared: {note}; run it again")
    return run


def other_setting(ours: Record, expected: Record) -> list[str]:
    first, second = identity(ours), identity(expected)
    advice = {"initial weights": ": start both from one file with --init-weights"}
    return [
        f"{key} is {str(first[key])[:12]} and {str(second[key])[:12]}{advice.get(key, '')}"
        for key in first
        if key != "dtype" and first[key] != second[key]
    ]


def shared_steps(ours: Record, expected: Record) -> int:
    """The number of steps, from the first one, that both have from one run."""
    runs = []
    for record in (ours, expected):
        steps = {(run.started, run.framework, run.devices): run.step for run in record.resumed}
        own = {(record.started, record.framework, record.config.devices): len(record.losses)}
        runs.append(own | steps if ours.resumed or expected.resumed else {})
    first, second = runs
    return max((min(first[run], second[run]) for run in first.keys() & second.keys()), default=0)


def facts(which: str, record: Record) -> Iterator[str]:
    devices = ", ".join(record.devices)
    variables = "".join(f", {name}={value}" for name, value in record.environment.items())
    setting = f"{record.chapter} on {devices}, {record.config.dtype}{variables}"
    yield f"the {which}: {record.framework} {setting}"
    known = record.framework in FRAMEWORKS
    if not known or record.source_sha256 != source_digest(record.framework):
        yield f"the {which} was made by other code than is here"
    if others := record.another_setup():
        yield f"the {which}: {others}"
