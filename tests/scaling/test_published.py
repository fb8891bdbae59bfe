"""Predictions are near published runs, or the page says why not."""

import pytest
from published import FITTED, PAGE, Compared, compared, table

RUNS = tuple(compared())


def test_the_page_has_the_table() -> None:
    assert table() in PAGE.read_text("utf-8")
    assert sum(run.note == FITTED for run in RUNS) < len(RUNS) / 2


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_prediction_is_near_or_says_why_not(run: Compared) -> None:
    assert not run.plan.refusal()
    (step, seconds), (kept, gigabytes) = run.seconds, run.gigabytes
    near = abs(step / seconds - 1) < 0.3 and abs(kept / (gigabytes or kept) - 1) < 0.15
    assert near == (run.note in ("", FITTED))
    assert 0.6 < step / seconds < 1.4
