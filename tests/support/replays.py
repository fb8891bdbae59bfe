"""What NumPy computes of a run, computed once: most tests compare the same twelve runs again."""

import pytest

from common.compare.checks import Run, allowed
from common.compare.recorded_steps import Recomputed, recompute

MADE: dict[str, Recomputed | None] = {}


def remembered(run: Run) -> Recomputed | None:
    """As `recompute`, which goes by the record, its arrays and what is allowed."""
    key = f"{run.record.sha256} {allowed(run)}"
    if key not in MADE:
        MADE[key] = recompute(run)
    return MADE[key]


@pytest.fixture(autouse=True)
def steps_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each different run is computed once, whichever test compares it."""
    monkeypatch.setattr("common.compare.recorded_steps.recompute", remembered)
