"""A name that one process holds at a time, and its folder, which goes again if nothing is in it."""

import threading
from pathlib import Path

import pytest

from common.base.errors import BusyError
from common.base.locks import held


def test_who_waits_makes_the_folder_again_that_goes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, waits = tmp_path / "new", threading.Event()
    monkeypatch.setattr("common.base.locks.time.sleep", lambda _: waits.set())
    found: list[bool] = []

    def second() -> None:
        with held(folder, "run"):
            found.append(folder.is_dir())

    waiting = threading.Thread(target=second)
    with held(folder, "run"):
        waiting.start()
        assert waits.wait(9)
    waiting.join(9)
    assert found == [True]


def test_nobody_waits_longer_than_its_patience(tmp_path: Path) -> None:
    with held(tmp_path, "run"), pytest.raises(BusyError), held(tmp_path, "run", patience=0.2):
        pass
    assert list(tmp_path.iterdir()) == []
