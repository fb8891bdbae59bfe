"""What NumPy computes of a run, computed once: most tests compare the same twelve runs again."""

from hashlib import sha256

import pytest

from common.compare.checks import Run, allowed
from common.compare.recorded_steps import Recomputed, recompute

MADE: dict[str, Recomputed | None] = {}


def remembered(run: Run) -> Recomputed | None:
    """As `recompute`, which goes by the configuration, the arrays and what is allowed."""
    content = sha256(f"{run.record.config.model_dump_json()} {allowed(run)}".encode())
    for name, values in sorted(run.arrays.items()):
        content.update(f"{name} {values.dtype} {values.shape}".encode())
        content.update(values.tobytes())
    key = content.hexdigest()
    if key not in MADE:
        MADE[key] = recompute(run)
    return MADE[key]


@pytest.fixture(autouse=True)
def steps_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each different run is computed once, whichever test compares it."""
    monkeypatch.setattr("common.compare.recorded_steps.recompute", remembered)
