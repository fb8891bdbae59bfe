"""Reads what is compared apart from suites: two files of weights, or the arrays of one run."""

from dataclasses import replace
from pathlib import Path

from common.base.errors import RequestError, RunError
from common.compare.collect import load
from common.compare.runs import NUMERICAL, RecordedRun
from common.models.weights_file import INDEX, bfloat16_note, load_arrays
from common.pairs.arrays import PairVerdict, compare_arrays
from common.records.record import read_record
from common.records.trace import expected_arrays


def compare_files(first: Path, second: Path, tolerance: float | None) -> PairVerdict:
    """The verdict on two files of weights. Raises RequestError."""
    for path in (first, second):
        if not path.name.lower().endswith((".safetensors", INDEX)):
            advice = "a run's tensors are beside its record"
            raise RequestError(f"{path} is no .safetensors file: {advice}")
    verdict = compare_arrays(load_arrays(first), load_arrays(second), tolerance)
    notes = [bfloat16_note(path) for path in (first, second)]
    return replace(verdict, notes=list(filter(None, notes)))


def read_run(path: Path) -> RecordedRun:
    """A run, arrays in the net's order. Raises RunError if it cannot be trusted."""
    run = load(path, read_record(path))
    compared = tuple(NUMERICAL.values())
    names = [name for name in expected_arrays(run.record) if name.startswith(compared)]
    if lacking := [name for name in names if name not in run.arrays]:
        raise RunError(f"its tensors lack {lacking[0]} ({path})")
    return RecordedRun(run.record, {name: run.arrays[name] for name in names} | run.arrays)
