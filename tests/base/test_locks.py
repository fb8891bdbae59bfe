"""A name that one process holds at a time, and its folder, which goes again if nothing is in it."""

import threading
import time
from pathlib import Path

import pytest

from common.base.errors import BusyError
from common.base.locks import held


def test_who_waits_makes_the_folder_again_that_goes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, waits, sleep = tmp_path / "new" / "one", threading.Event(), time.sleep
    found: list[bool] = []

    def wait(seconds: float) -> None:
        waits.set()
        sleep(seconds)

    def second() -> None:
        with held(folder, "run"):
            found.append(folder.is_dir())

    monkeypatch.setattr("common.base.locks.time.sleep", wait)
    waiting = threading.Thread(target=second)
    with held(folder, "run"):
        waiting.start()
        assert waits.wait(9)
    waiting.join(9)
    assert found == [True]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_folder_that_cannot_be_is_said_at_once(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "x"
    folder.touch() if kind == "file" else folder.symlink_to("nowhere")
    with pytest.raises(FileExistsError), held(folder, "run", timeout=0.5):
        pass


def test_nobody_waits_longer_than_its_patience(tmp_path: Path) -> None:
    with held(tmp_path, "run"), pytest.raises(BusyError), held(tmp_path, "run", timeout=0.2):
        pass
    assert list(tmp_path.iterdir()) == []
