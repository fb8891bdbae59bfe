"""A process of DDP that is killed, frozen or never there ends the run soon, by name."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from killed_runs import Case, Runner, descendants, require_gone

pytestmark = [pytest.mark.faults, pytest.mark.only("pytorch")]

DEVICES = 3
ENDLESS = Case("concise", DEVICES, ("--width=4", "--epochs=1000000"))

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={DEVICES}"]

HOST = socket.gethostname()

SOON = 30
"""Seconds in which it has to be known."""

PLACES = {"the process of devices 0 to 2": 1, "the process of device 1": 3}
"""What a message may name, and its place among all processes that the run has started.

The first is multiprocessing's own, which only tidies up.
"""


def begun(
    runner: Runner, launcher: Sequence[str] = ()
) -> "tuple[subprocess.Popen[str], list[int]]":
    """A run that trains, and all processes that it has started."""
    run = runner.start("out", launcher=launcher)
    limit = time.monotonic() + 200
    while not runner.begun("out"):
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < limit
        time.sleep(0.1)
    return run, descendants(run.pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("who", PLACES)
def test_a_process_that_is_lost_is_named(tmp_path: Path, who: str, number: signal.Signals) -> None:
    runner = Runner("pytorch", ENDLESS, tmp_path)
    run, processes = begun(runner)
    started = time.monotonic()
    os.kill(processes[PLACES[who]], number)
    out, err = run.communicate(timeout=2 * SOON)
    assert time.monotonic() - started < SOON
    frozen = "has not answered for 15 seconds: it is frozen"
    became = "was ended by SIGKILL" if number == signal.SIGKILL else frozen
    assert (out, err) == ("", f"python -m frameworks.pytorch.concise: error: {who} {became}\n")
    assert run.returncode == 1
    require_gone(processes)
    record = runner.record("out")
    assert record.status == "failed"
    assert record.failure is not None
    assert record.failure.message == f"{who} {became}"


def test_a_process_of_torchrun_that_is_frozen_is_named(tmp_path: Path) -> None:
    runner = Runner("pytorch", ENDLESS, tmp_path)
    run, processes = begun(runner, TORCHRUN)
    started = time.monotonic()
    os.kill(processes[1], signal.SIGSTOP)
    _, err = run.communicate(timeout=2 * SOON)
    assert time.monotonic() - started < SOON
    said = f"process 1 on {HOST} has not answered for 15 seconds: it is frozen, or its host is gone"
    # As soon as one has ended, torchrun ends those that have not said so yet.
    assert f"python -m frameworks.pytorch.concise: error: {said}\n" in err
    assert run.returncode == 1
    require_gone(processes)
    assert runner.record("out").status == "failed"


@pytest.mark.parametrize("absent", [0, 2])
def test_a_process_that_no_launcher_starts_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: int
) -> None:
    runner = Runner("pytorch", ENDLESS, tmp_path)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "by hand")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(29600 + os.getpid() % 1000))
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, str(DEVICES))
    runs, started = [], time.monotonic()
    for rank in set(range(DEVICES)) - {absent}:
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        runs.append(runner.start("out", "--join-timeout=5"))
    for rank, run in zip(sorted(set(range(DEVICES)) - {absent}), runs, strict=True):
        _, err = run.communicate(timeout=200)
        late = f"process {absent} of 3 did not start in time: start all"
        alone = f"process {rank} on {HOST} cannot reach the first process at 127.0.0.1:"
        assert (late if absent else alone) in err
        assert run.returncode == 1
    assert time.monotonic() - started < 5 + SOON  # --join-timeout, after which it is told
