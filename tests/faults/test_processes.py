"""A process of DDP that is killed, frozen or missing ends the run soon, by name.

Whatever ends the run ends its processes, too, and leaves no file behind.
"""

import os
import re
import socket
import subprocess
import time
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGKILL, SIGSTOP, SIGTERM, Signals

import pytest
from killed_runs import Case, Runner
from started import descendants, free_port, require_gone, with_signals

pytestmark = [pytest.mark.faults, pytest.mark.only("pytorch")]

DEVICES = 3
ENDLESS = Case("concise", DEVICES, ("--width=4", "--epochs=1000000"))
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={DEVICES}")
HOST = socket.gethostname()
FROZEN = "has not answered for 15 seconds: it is frozen"

SOON = 30
"""Seconds in which the loss has to be reported."""


def begun(runner: Runner, launcher: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
    """A run that has left its first record."""
    with with_signals():
        run = runner.start("out", launcher=launcher)
    limit = time.monotonic() + 200
    while not runner.path("out").exists():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < limit
        time.sleep(0.1)
    return run


@pytest.mark.parametrize(
    ("launcher", "place", "number", "said"),
    [
        # The first process of a run is multiprocessing's own, which only tidies up.
        ((), 1, SIGKILL, "the process of devices 0 to 2 was ended by SIGKILL"),
        ((), 3, SIGKILL, "the process of device 1 was ended by SIGKILL"),
        ((), 1, SIGSTOP, f"the process of devices 0 to 2 {FROZEN}"),
        ((), 3, SIGSTOP, f"the process of device 1 {FROZEN}"),
        (TORCHRUN, 1, SIGSTOP, f"process 1 on {HOST} {FROZEN}, or its host is gone"),
    ],
)
def test_a_process_that_is_lost_is_named(
    tmp_path: Path, launcher: tuple[str, ...], place: int, number: Signals, said: str
) -> None:
    runner = Runner("pytorch", ENDLESS, tmp_path)
    run = begun(runner, launcher)
    processes, started = descendants(run.pid), time.monotonic()
    os.kill(processes[place], number)
    out, err = run.communicate(timeout=2 * SOON)
    assert time.monotonic() - started < SOON
    line = f"python -m frameworks.pytorch.concise: error: {said}\n"
    # When one has ended, torchrun ends and names the others.
    assert line in err if launcher else (out, err) == ("", line)
    assert run.returncode == 1
    require_gone(processes)
    record = runner.record("out")
    assert record.status == "failed"
    assert launcher or (record.failure and record.failure.message == said)


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
    assert not list(temporary.iterdir())
    assert runner.record("out").status == ("running" if number == SIGKILL else "interrupted")
    said = r".*: error: stopped after step [\d,]+ of 7,000,000, and .*\n"
    assert number == SIGKILL or re.fullmatch(said, err), err


@pytest.mark.parametrize("absent", [0, 2])
def test_a_process_that_no_launcher_starts_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: int
) -> None:
    runner = Runner("pytorch", ENDLESS, tmp_path)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "by hand")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, str(DEVICES))
    runs, started = {}, time.monotonic()
    for rank in {*range(DEVICES)} - {absent}:
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        runs[rank] = runner.start("out", "--join-timeout=5")
    for rank, run in runs.items():
        _, err = run.communicate(timeout=200)
        late = f"process {absent} of 3 did not start in time: start all"
        alone = f"process {rank} on {HOST} cannot reach the first process at 127.0.0.1:"
        assert (late if absent else alone) in err
        assert run.returncode == 1
    assert time.monotonic() - started < 5 + SOON  # --join-timeout, after which the run ends
