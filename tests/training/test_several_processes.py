"""All processes of a run resume from the same checkpoint."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_chapter import EVERY, KEPT, RECORD, CommandLine, FakeChapter, stopping

from common.backends.devices import Process


def test_no_process_looks_for_checkpoints_before_the_folder_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = CommandLine(monkeypatch, tmp_path)
    assert start(*EVERY, loss=stopping(3)) == 143
    files = list(KEPT.glob(f"{RECORD.stem}-step3.*"))
    for path in files:
        path.rename(path.name)
    begun: list[FakeChapter] = []

    def launch(self: FakeChapter, worker: Callable[[Process], None], *_: Any) -> None:
        begun.append(self)
        worker(Process(1, 3, 1, 3, gather=gather))

    def gather(value: Any) -> list[Any]:
        """Waits for the first process, which waits for the earlier run."""
        for path in files:
            if Path(path.name).exists():
                shutil.move(path.name, path)
        return [value if isinstance(value, dict) else False, value]

    monkeypatch.setattr(FakeChapter, "launch", launch)
    assert start(*EVERY, "--resume") == 0
    assert [len(chapter.batches) for chapter in begun] == [7 - 3]


def test_no_process_that_stops_leaves_before_all_have_done_what_they_had_queued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queued step may need the other processes, as MXNet's servers."""
    begun: list[FakeChapter] = []

    def launch(self: FakeChapter, worker: Callable[[Process], None], *_: Any) -> None:
        def gather(value: Any) -> list[Any]:
            self.calls.append("gather")
            return [value] * 3

        begun.append(self)
        worker(Process(0, 3, 0, 3, gather=gather))

    monkeypatch.setattr(FakeChapter, "launch", launch)
    assert CommandLine(monkeypatch, tmp_path)("--quiet", loss=stopping(3)) == 143
    assert begun[0].calls[-2:] == ["synchronize", "gather"]
