"""Compares two runs: whether they are of the same setting, and where they begin to diverge."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Weights
from common.base.errors import RunError
from common.compare.accuracy import accuracy
from common.compare.checks import NUMERICAL, Run, curve, head, is_long, numerical_checks
from common.compare.collect import identity, load
from common.compare.criteria import CRITERIA
from common.models.nets import trainable
from common.pairs.arrays import allowed_by, pair_up
from common.pairs.verdict import ArrayPair, PairVerdict, pair_verdict
from common.records.fingerprint import source_digest
from common.records.record import Record
from common.records.store import read_record

Part = tuple[str, Weights, Weights, float]
"""A check, the arrays of both that it compares, and their limit; infinite where there is none."""

ADVICE: Final = {
    "initial weights": ": start both from one file with --init-weights",
    "shards": ": batch norm sees each device's alone, unless --batch-norm is sync",
}

DIGESTS: Final = ("data", "initial weights")


def read_run(path: Path) -> Run:
    """A run from its record and the tensors beside it. Raises RunError if it cannot be trusted."""
    run = load(path, read_record(path))
    if lacking := [name for name in _required(run.record) if name not in run.arrays]:
        raise RunError(f"its tensors lack {lacking[0]} ({path})")
    return run


def compare_runs(ours: Run, expected: Run, tolerance: float | None = None) -> PairVerdict:
    """The verdict on two runs, `ours` against what is `expected`.

    Framework, devices and dtype may differ, the setting may not. Without a `tolerance` the limits
    are the project's own.
    """
    notes = list(_notes(ours.record, expected.record))
    if differences := other_setting(ours.record, expected.record):
        conclusion = f"not comparable, as the settings differ: {'; '.join(differences)}"
        return PairVerdict(
            passed=False, conclusion=conclusion, differences=differences, notes=notes
        )
    pairs: list[ArrayPair] = []
    for check, first, second, most in parts(ours, expected, tolerance):
        pairs += pair_up(first, second, allowed_by(most), check)
    return pair_verdict(pairs, notes)


def other_setting(ours: Record, expected: Record) -> list[str]:
    """What differs of the setting, in words; the dtype is no part of it."""
    first, second = identity(ours), identity(expected)
    return [
        f"{key} is {_short(key, first[key])} and {_short(key, second[key])}{ADVICE.get(key, '')}"
        for key in first
        if key != "dtype" and first[key] != second[key]
    ]


def parts(ours: Run, expected: Run, tolerance: float | None) -> Iterator[Part]:
    """What is compared, in the order in which a run computes it.

    Each run may be a limit away from what is right, so two that are right could be two limits
    apart; but the limits are more than twice what was measured, and hold for pairs as well.
    """
    # A float32 run differs from a float64 run by its own rounding.
    coarser = expected if expected.record.config.dtype == "float32" else ours
    limits = numerical_checks(coarser)
    first, second = ours.arrays, expected.arrays
    if tolerance is None:
        first, second = head(coarser, first), head(coarser, second)
    for check, prefix in NUMERICAL.items():
        most = limits[check][1].limit if check in limits else math.inf
        one, other = (
            {name: values for name, values in arrays.items() if name.startswith(prefix)}
            for arrays in (first, second)
        )
        yield check, one, other, most if tolerance is None else tolerance
        if check == "trajectory" and tolerance is None and is_long(coarser):
            one, other = (curve(run, run.arrays["losses"]) for run in (ours, expected))
            yield "curve", one, other, 2 * CRITERIA[coarser.record.chapter].curve.limit


def _required(record: Record) -> Iterator[str]:
    """The names of the tensors that a run has to leave."""
    yield from ("logits/before", "logits/after")
    for name in record.config.shapes():
        yield from [f"weights/{name}", *([f"gradients/{name}"] if trainable(name) else [])]


def _notes(ours: Record, expected: Record) -> Iterator[str]:
    """What both are, and what has to be known of them."""
    for which, record in (("first", ours), ("second", expected)):
        config = record.config
        devices = ", ".join(record.devices)
        told = "".join(f", {name}={value}" for name, value in record.environment.items())
        yield f"the {which}: {record.framework} {record.chapter} on {devices}, {config.dtype}{told}"
        known = record.framework in FRAMEWORKS
        if not known or record.source_sha256 != source_digest(record.framework):
            yield f"the {which} was made by other code than is here"
    if ours.epochs and expected.epochs and ours.config.steps is None:
        reached = [accuracy(record) for record in (ours, expected)]
        both = f"test accuracy {reached[0]:.4f} and {reached[1]:.4f}"
        yield f"{both}: `nox -s seeds` shows how much of it is chance"


def _short(key: str, value: Any) -> str:
    return f"{value[:12]}..." if key in DIGESTS else str(value)
