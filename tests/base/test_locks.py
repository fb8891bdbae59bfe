"""A name that one process holds at a time."""

from pathlib import Path

import pytest

from common.base.errors import BusyError
from common.base.locks import held


def test_another_process_waits_no_longer_than_it_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "one"
    busy = pytest.raises(BusyError, match="another run is writing run in")
    with held(folder, "run"), busy, held(folder, "run", timeout=0.2):
        pass
    with held(folder, "run", timeout=0):
        pass
    assert list(folder.iterdir()) == []
