"""A process of DDP that is killed ends the run soon, by name.

Whatever ends the run ends its processes, too, and leaves no file behind.
"""

import os
import re
import subprocess
import time
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM, Signals

import pytest
from killed_runs import Case, Runner
from started import children, descendants, require_gone, with_signals

pytestmark = [pytest.mark.faults, pytest.mark.only("pytorch")]

DEVICES = 3
ENDLESS = Case("concise", DEVICES, ("--width=4", "--epochs=1000000"))

SOON = 30
"""Seconds in which the loss has to be reported."""


def begun(runner: Runner) -> "subprocess.Popen[str]":
    """A run that has left its first record."""
    with with_signals():
        run = runner.start("out")
    limit = time.monotonic() + 200
    while not runner.path("out").exists():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < limit
        time.sleep(0.1)
    return run


def test_a_process_that_is_killed_is_named(tmp_path: Path) -> None:
    runner = Runner("pytorch", ENDLESS, tmp_path)
    run = begun(runner)
    processes, started = descendants(run.pid), time.monotonic()
    trainers = [child for process in children(run.pid) for child in children(process)]
    os.kill(trainers[1], SIGKILL)
    out, err = run.communicate(timeout=2 * SOON)
    assert time.monotonic() - started < SOON
    said = "the process of device 1 was ended by SIGKILL"
    assert (out, err) == ("", f"python -m frameworks.pytorch.concise: error: {said}\n")
    assert run.returncode == 1
    require_gone(processes)
    record = runner.record("out")
    assert record.status == "failed"
    assert record.failure
    assert record.failure.message == said


@pytest.mark.parametrize(
    ("number", "status"), [(SIGKILL, -SIGKILL), (SIGINT, 130), (SIGTERM, 143), (SIGHUP, 143)]
)
def test_a_run_that_is_stopped_takes_its_processes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: Signals, status: int
) -> None:
    (temporary := tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    # PyTorch's cache of compiled code may stay.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    runner = Runner("pytorch", ENDLESS, tmp_path)
    run = begun(runner)
    processes = descendants(run.pid)
    if number in (SIGINT, SIGHUP):
        os.killpg(run.pid, number)  # as a terminal does
    else:
        run.send_signal(number)
    _, err = run.communicate(timeout=SOON)
    assert run.returncode == status
    require_gone(processes)
    left = [each for each in temporary.rglob("*") if not each.is_dir() and not each.is_socket()]
    assert left == []
    assert number == SIGKILL or not list(temporary.iterdir())
    assert runner.record("out").status == ("running" if number == SIGKILL else "interrupted")
    said = r".*: error: stopped after step [\d,]+ of 7,000,000, and .*\n"
    assert number == SIGKILL or re.fullmatch(said, err), err
