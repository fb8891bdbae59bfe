"""Whatever ends a command, what it has started ends with it, and leaves no file behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from started import SECONDS, descendants, heard, require_gone

from common.settings.arguments import as_flags

pytestmark = pytest.mark.only("pytorch")

ROOT = Path(__file__).parents[2]
ENDLESS: dict[str, object] = {
    "dataset": "synthetic",
    "train_examples": 60,
    "test_examples": 20,
    "batch_size": 15,
}
ENDLESS |= {"quiet": True, "devices": 2, "threads": 1, "steps": 1_000_000, "width": 4}
GRID = """
from pathlib import Path
from common import grid
grid.cores = lambda: 2
outs = [Path({out!r}, name) for name in "abc"]
grid.runs = lambda *_, **__: [("concise", dict({endless}, out=out)) for out in outs]
raise SystemExit(grid.main(["pytorch"]))
"""


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command that leads a group, as in a terminal, and keeps its files in `tmp`."""
    (tmp_path / "tmp").mkdir()
    # PyTorch's cache of compiled code, which the next run takes, too, is no such file.
    folders = {"TMPDIR": str(tmp_path / "tmp"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    started = []

    def begin(*command: str) -> "subprocess.Popen[str]":
        with heard():
            run = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=os.environ | folders,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        started.append(run.pid)
        return run

    yield begin
    for group in started:
        with suppress(ProcessLookupError):  # as it should be
            os.killpg(group, signal.SIGKILL)


def wait_for(run: "subprocess.Popen[str]", ready: Callable[[], object]) -> None:
    limit = time.monotonic() + SECONDS
    while not ready():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < limit
        time.sleep(0.1)


def records(folder: Path) -> list[Path]:
    return list((folder / "out").glob("*/*dev.json"))


def require_nothing_left(folder: Path, processes: list[int]) -> None:
    """No process runs on, no run is complete, and no temporary file is there."""
    require_gone(processes)
    found = {json.loads(path.read_text())["status"] for path in records(folder)}
    assert found <= {"running", "failed", "interrupted"}
    assert not list((folder / "tmp").iterdir())


def test_a_killed_grid_takes_the_processes_of_its_runs_along(start: Start, tmp_path: Path) -> None:
    grid = start("-c", GRID.format(endless=ENDLESS, out=str(tmp_path / "out")))
    wait_for(grid, lambda: len(records(tmp_path)) == 2)
    processes = descendants(grid.pid)
    assert len(processes) >= 2 * (1 + 1 + 2)  # run, server and devices
    grid.kill()
    grid.communicate(timeout=SECONDS)
    require_nothing_left(tmp_path, processes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_stopped_takes_its_processes_along(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    flags = as_flags({**ENDLESS, "out": tmp_path / "out" / "a"})
    run = start("-m", "frameworks.pytorch.concise", *flags)
    wait_for(run, lambda: records(tmp_path))
    processes = descendants(run.pid)
    assert len(processes) >= 3
    if number == signal.SIGHUP:
        os.killpg(run.pid, number)  # as a terminal does that is closed
    else:
        run.send_signal(number)
    _, err = run.communicate(timeout=SECONDS)
    assert run.returncode == 143
    started = r" after step [\d,]+ of 1,000,000, and kept no checkpoint"
    not_yet = ", and kept nothing new"  # its record is there before its first step
    said = f"python -m frameworks.pytorch.concise: error: stopped({started}|{not_yet})\n"
    assert re.fullmatch(said, err)
    require_nothing_left(tmp_path, processes)
