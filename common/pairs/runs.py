"""Compares two runs: whether their setting is the same, and where they diverge."""

from collections.abc import Iterator
from pathlib import Path

from common.backends.frameworks import FRAMEWORKS
from common.base.errors import RunError
from common.compare.collect import identity, load
from common.compare.distances import compare, first_beyond
from common.compare.findings import Check
from common.compare.limits import LIMITS
from common.compare.runs import NUMERICAL, Run
from common.pairs.arrays import PairVerdict, pair_of
from common.records.fingerprint import source_digest
from common.records.record import Record
from common.records.store import read_record
from common.records.trace import expected_arrays


def read_run(path: Path) -> Run:
    """A run from its record and tensors; weights and gradients are in the net's order.

    Raises RunError if it cannot be trusted.
    """
    run = load(path, read_record(path))
    compared = tuple(NUMERICAL.values())
    names = [name for name in expected_arrays(run.record) if name.startswith(compared)]
    if lacking := [name for name in names if name not in run.arrays]:
        raise RunError(f"its tensors lack {lacking[0]} ({path})")
    return Run(run.record, {name: run.arrays[name] for name in names} | run.arrays)


def compare_runs(ours: Run, expected: Run, tolerance: float | None = None) -> PairVerdict:
    """The verdict on two runs, `ours` against what is `expected`.

    Framework, devices and dtype may differ, the setting may not. Without a `tolerance`,
    the limits are those of the chapter.
    """
    notes = list(_notes(ours.record, expected.record))
    if differences := other_setting(ours.record, expected.record):
        return PairVerdict([], notes, differences)
    # A float32 run differs from a float64 run by its own rounding.
    coarser = expected if expected.record.config.dtype == "float32" else ours
    limits = {name: limit.limit for name, limit in coarser.tolerances.items()}
    first, second = ours.arrays, expected.arrays
    if tolerance is None:
        first, second = coarser.compared(first), coarser.compared(second)
    pairs: list[Check] = []
    for check, prefix in NUMERICAL.items():
        limit = limits.get(check) if tolerance is None else tolerance
        pairs += [pair_of(far, limit, check=check) for far in compare(first, second, prefix)]
        if check != "trajectory":
            continue
        if limit is not None and pairs[-1].distance is not None and not pairs[-1].passed:
            step = first_beyond(first["losses"], second["losses"], limit)
            pairs[-1].note = f"first at step {step}"
        if tolerance is None and coarser.long:
            curve, right = (run.curve(run.arrays["losses"]) for run in (ours, expected))
            # Two right runs could be two limits apart.
            limit = 2 * LIMITS[coarser.record.chapter].curve.limit
            pairs += [pair_of(far, limit, check="curve") for far in compare(curve, right, "")]
    return PairVerdict(pairs, notes)


def other_setting(ours: Record, expected: Record) -> list[str]:
    """What differs of the setting, in words; the dtype is no part of it."""
    first, second = identity(ours), identity(expected)
    advice = {"initial weights": ": start both from one file with --init-weights"}
    return [
        f"{key} is {str(first[key])[:12]} and {str(second[key])[:12]}{advice.get(key, '')}"
        for key in first
        if key != "dtype" and first[key] != second[key]
    ]


def _notes(ours: Record, expected: Record) -> Iterator[str]:
    """What both are, and what has to be known of them."""
    for which, record in (("first", ours), ("second", expected)):
        devices, dtype = ", ".join(record.devices), record.config.dtype
        variables = "".join(f", {name}={value}" for name, value in record.environment.items())
        yield f"the {which}: {record.framework} {record.chapter} on {devices}, {dtype}{variables}"
        known = record.framework in FRAMEWORKS
        if not known or record.source_sha256 != source_digest(record.framework):
            yield f"the {which} was made by other code than is here"
