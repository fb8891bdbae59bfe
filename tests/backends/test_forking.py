"""The server of a run's processes, where Python cannot start another Python."""

import multiprocessing.spawn
import re
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

from common.backends.devices import Process
from common.backends.forking import in_processes
from common.base.errors import RunError


@pytest.fixture
def other_python(tmp_path: Path) -> Iterator[Path]:
    """What is started in place of this Python."""
    resource_tracker.ensure_running()  # or it would be started so, too
    path, before = tmp_path / "python", multiprocessing.spawn.get_executable()
    multiprocessing.spawn.set_executable(str(path))
    yield path
    multiprocessing.spawn.set_executable(before)


def test_a_python_that_cannot_start_tells_why(other_python: Path) -> None:
    other_python.write_text("#!/bin/sh\necho 'Fatal:\nno encodings here' >&2\nexit 3\n")
    other_python.chmod(0o700)
    why = re.escape(f": {other_python} cannot be started: no encodings here")
    with pytest.raises(RunError, match=f"the process of devices 0 to 1 was ended .*{why}$"):
        in_processes(print, [Process(rank, 2) for rank in range(2)], [])
