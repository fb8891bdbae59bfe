"""All processes of a run start alike, resume from the same checkpoint, and stop together."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_chapter import EVERY, KEPT, RECORD, CommandLine, FakeChapter, start as start, stopping

from common.backends.interface import Process
from common.base.arrays import Array

Gathered = Callable[[Array], Array]
Among = Callable[[int, Gathered], list[FakeChapter]]


@pytest.fixture
def among(monkeypatch: pytest.MonkeyPatch) -> Among:
    """Lets runs be one of three processes; returns the chapters that begin."""

    def let(rank: int, gathered: Gathered) -> list[FakeChapter]:
        begun: list[FakeChapter] = []

        def launch(self: FakeChapter, worker: Callable[[Process], None], *_: Any) -> None:
            begun.append(self)
            worker(Process(rank, 3, rank, 3, gathered=gathered))

        monkeypatch.setattr(FakeChapter, "launch", launch)
        return begun

    return let


def test_no_process_looks_for_checkpoints_before_the_folder_is_locked(
    start: CommandLine, among: Among
) -> None:
    assert start(*EVERY, loss=stopping(3)) == 143
    files = list(KEPT.glob(f"{RECORD.stem}-step3.*"))
    for path in files:
        path.rename(path.name)

    def gathered(values: Array) -> Array:
        """A flag, for the first time, waits for an earlier run to end."""
        for path in files if values[0] == 0 else ():
            if Path(path.name).exists():
                shutil.move(path.name, path)
        return np.stack([values])

    begun = among(1, gathered)
    assert start(*EVERY, "--resume") == 0
    assert [len(chapter.batches) for chapter in begun] == [7 - 3]


def test_no_process_that_stops_leaves_before_all_have_done_what_they_had_queued(
    start: CommandLine, among: Among
) -> None:
    """A queued step may need the other processes."""

    def gathered(values: Array) -> Array:
        if begun:
            begun[0].calls.append("gathered")
        return np.stack([values])

    begun = among(0, gathered)
    assert start("--quiet", loss=stopping(3)) == 143
    assert begun[0].calls[-2:] == ["synchronize", "gathered"]


def test_processes_that_do_not_start_alike_are_refused(start: CommandLine, among: Among) -> None:
    def gathered(values: Array) -> Array:
        text = values.astype(np.uint8).tobytes()
        _, key, digest = text.rpartition(b'"data": "')
        other = text.replace(key + digest[:12], key + b"000000000000") if key else text
        return np.stack([values, np.frombuffer(other, np.uint8).astype(values.dtype)])

    among(0, gathered)
    assert start("--quiet") == 2
    told = "process 1 has other data than the first one: start all processes alike"
    assert told in start.printed().err
