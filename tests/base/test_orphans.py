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
from killed_runs import descendants
from started import SECONDS, alive

ROOT = Path(__file__).parents[2]
SMALL = "--dataset=synthetic --train-examples=60 --test-examples=20 --batch-size=15 --quiet"
ENDLESS = [*SMALL.split(), "--devices=2", "--threads=1", "--steps=1000000"]
GRID = """
from pathlib import Path
from common import grid
framework, chapter, *flags = {arguments}
grid.cores = lambda: 2
outs = [Path({out!r}, name) for name in "abc"]
grid.commands = lambda *_, **__: [(chapter, [*flags, f"--out={{out}}"]) for out in outs]
raise SystemExit(grid.main([framework]))
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
        # Tests that run in the background may ignore Ctrl-C, and so would all that they start.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        run = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=os.environ | folders,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        signal.signal(signal.SIGINT, before)
        started.append(run.pid)
        return run

    yield begin
    for group in started:
        with suppress(ProcessLookupError):  # as it should be
            os.killpg(group, signal.SIGKILL)


def start_grid(start: Start, folder: Path, framework: str, chapter: str) -> "subprocess.Popen[str]":
    """A grid of three endless runs, two at a time."""
    arguments = [framework, chapter, *ENDLESS, *(["--width=4"] if chapter == "concise" else [])]
    grid = start("-c", GRID.format(arguments=arguments, out=str(folder / "out")))
    wait_for(grid, lambda: len(records(folder)) == 2)
    return grid


def wait_for(run: "subprocess.Popen[str]", ready: Callable[[], object]) -> None:
    limit = time.monotonic() + SECONDS
    while not ready():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < limit
        time.sleep(0.1)


def records(folder: Path) -> list[Path]:
    return list((folder / "out").glob("*/*dev.json"))


def require_gone(processes: list[int]) -> None:
    """Nobody runs on; orphans need a moment to notice that they are."""
    assert processes
    limit = time.monotonic() + 20
    while any(alive(process) for process in processes):
        assert time.monotonic() < limit
        time.sleep(0.1)


def require_nothing_left(folder: Path, processes: list[int]) -> None:
    """Nobody runs on, nobody completed, and no temporary file is there."""
    require_gone(processes)
    found = {json.loads(path.read_text())["status"] for path in records(folder)}
    assert found <= {"running", "failed", "interrupted"}
    assert not list((folder / "tmp").iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_grid_takes_its_runs_along(
    framework: str, start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    grid = start_grid(start, tmp_path, framework, "scratch")
    processes = descendants(grid.pid)
    grid.send_signal(number)
    out, err = grid.communicate(timeout=SECONDS)
    if number == signal.SIGTERM:
        assert grid.returncode == 128 + number
        assert err == "python -m common.grid: error: ended by SIGTERM\n"
    assert out == "3 runs, 2 at a time\n"
    require_nothing_left(tmp_path, processes)


@pytest.mark.parametrize("times", [1, 3])
def test_an_interrupted_grid_says_so_in_a_line(
    framework: str, start: Start, tmp_path: Path, times: int
) -> None:
    grid = start_grid(start, tmp_path, framework, "scratch")
    processes = descendants(grid.pid)
    for _ in range(times):  # a terminal sends it to everyone, each time
        os.killpg(grid.pid, signal.SIGINT)
    out, err = grid.communicate(timeout=SECONDS)
    ends = {130: "python -m common.grid: error: interrupted\n"}
    if times > 1:  # the second one may end it at once
        ends[-signal.SIGINT] = ""
    assert ends[grid.returncode] == err
    assert out == "3 runs, 2 at a time\n"
    require_nothing_left(tmp_path, processes)


@pytest.mark.only("pytorch")
def test_a_grid_takes_the_processes_of_its_runs_along(start: Start, tmp_path: Path) -> None:
    grid = start_grid(start, tmp_path, "pytorch", "concise")
    processes = descendants(grid.pid)
    assert len(processes) >= 2 * (1 + 1 + 2)  # run, server and devices
    grid.kill()
    grid.communicate(timeout=SECONDS)
    require_nothing_left(tmp_path, processes)


@pytest.mark.only("pytorch")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_run_takes_its_processes_along(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    flags = [*ENDLESS, "--width=4", f"--out={tmp_path / 'out' / 'a'}"]
    run = start("-m", "frameworks.pytorch.concise", *flags)
    wait_for(run, lambda: records(tmp_path))
    processes = descendants(run.pid)
    assert len(processes) >= 3
    run.send_signal(number)
    _, err = run.communicate(timeout=SECONDS)
    ends = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}
    assert run.returncode == ends[number]
    started = r" after step [\d,]+ of 1,000,000, and kept no checkpoint"
    not_yet = ", and kept nothing of this time"  # its record is there before its first step
    said = f"python -m frameworks.pytorch.concise: error: stopped({started}|{not_yet})\n"
    assert re.fullmatch("" if number == signal.SIGKILL else said, err)
    require_nothing_left(tmp_path, processes)


@pytest.mark.only("pytorch")
def test_a_run_that_fails_leaves_nothing_but_its_record(start: Start, tmp_path: Path) -> None:
    flags = [*SMALL.split(), "--devices=2", "--steps=9", "--width=4", "--lr=1e30"]
    run = start("-m", "frameworks.pytorch.concise", *flags, f"--out={tmp_path / 'out'}")
    _, err = run.communicate(timeout=SECONDS)
    assert run.returncode == 1
    assert "try a smaller --lr" in err
    assert not list((tmp_path / "tmp").iterdir())
    (left,) = (tmp_path / "out").iterdir()
    assert "Traceback" in json.loads(left.read_text())["failure"]["traceback"]


@pytest.mark.only("pytorch")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_benchmark_takes_what_measures_along(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    bench = start("-m", "bench", f"--python=pytorch={sys.executable}", f"--out={tmp_path}")
    wait_for(bench, lambda: any("bench.measure" in said(each) for each in descendants(bench.pid)))
    time.sleep(2)
    processes = descendants(bench.pid)
    bench.send_signal(number)
    _, err = bench.communicate(timeout=SECONDS)
    if number == signal.SIGTERM:
        assert bench.returncode == 128 + number
        assert err == "python -m bench: error: ended by SIGTERM\n"
        assert not list((tmp_path / "tmp").iterdir())
    require_gone(processes)


def said(process: int) -> str:
    """The command line of a process; empty, if it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process}/cmdline").read_text()
    return ""
