"""Two runs on disk, and what their comparison finds."""

import json
from pathlib import Path
from typing import Any

from agreement import edit

from common.pairs.runs import compare_runs, read_run
from common.pairs.verdict import ArrayPair, PairVerdict


def compared(ours: Path, theirs: Path, tolerance: float | None = None) -> PairVerdict:
    return compare_runs(read_run(ours), read_run(theirs), tolerance)


def configure(path: Path, **settings: Any) -> None:
    """Changes what a record says of its configuration."""
    edit(path, config=json.loads(path.read_text())["config"] | settings)


def failed(verdict: PairVerdict) -> list[ArrayPair]:
    return [pair for pair in verdict.arrays if not pair.passed]
