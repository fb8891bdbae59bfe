"""Runs that are computed again at the same time: which, how many, and what comes of an error."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.compare.checks import Run
from common.compare.replay import MOST, at_once, replays
from common.pairs.runs import read_run


@pytest.fixture
def several(good: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Twelve runs, on a machine of four cores, with no threads of NumPy's own."""
    monkeypatch.setattr("common.compare.replay.cores", lambda: 4)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    return [read_run(path) for path in sorted((good / "float64").glob("*dev.json"))]


def test_each_run_gets_what_is_its_own(several: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(MOST)

    def slow(run: Run) -> str:
        together.wait(20)  # as many as there are cores are computed at the same time
        time.sleep(0.01 * (12 - several.index(run)))  # the last ones are done first
        return run.name

    monkeypatch.setattr("common.compare.replay.replay", slow)
    found: dict[str, Any] = {**replays(several, "")}
    assert [*found.items()] == [(run.name, run.name) for run in several]


def test_a_large_run_has_the_memory_to_itself_and_numpys_threads_the_cores(
    several: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert at_once(several) == MOST
    record = several[0].record
    config = record.config.model_copy(update={"batch_size": 2000})
    large = replace(several[0], record=record.model_copy(update={"config": config}))
    assert at_once([large, *several]) == 1
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    assert at_once(several) == 1
