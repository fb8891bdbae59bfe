"""The comparison of an environment: its commands, and what is left when it ends."""

import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from started import OFFLINE, ROOT, children, descendants, python, require_gone, with_signals

from common import prove

PROVE = "-m", "common.prove"


@pytest.mark.parametrize("more", ["", " --more-devices"])
def test_each_framework_runs_in_its_python_and_all_are_compared(more: str) -> None:
    flags = f"pytorch jax=/bin/sh --gpus=2 --without-gpu pytorch --out=r{more}"
    planned = list(prove.commands(prove.parser().parse_args(flags.split())))
    for command in planned[:-1]:
        assert command[0] == ("/bin/sh" if "jax" in command else sys.executable)
    *ran, compared = (" ".join(command[2:]) for command in planned)
    torch, jax = "common.grid pytorch --out=r", "common.grid jax --out=r"
    runs = [torch, jax, f"{jax} --gpus=2"]
    assert {*ran} == {*runs, *(f"{run}{more}" for run in runs)}
    expected = f"--planned --frameworks pytorch jax{more} --gpus=2 --without-gpu pytorch"
    assert compared == f"common.parity r {expected}"


def test_runs_that_leave_no_records_are_no_proof(tmp_path: Path) -> None:
    """The Python of JAX is a shell command that does nothing, and succeeds."""
    variables = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), **OFFLINE}
    done = python(*PROVE, "jax=/bin/true", f"--out={tmp_path}/proof", **variables)
    assert done.returncode == 1
    *_, failed = done.stderr.splitlines()
    assert failed.startswith("python -m common.prove: error: these have failed: ")


@pytest.mark.only("pytorch")
def test_a_signal_that_ends_it_ends_what_it_runs(framework: str, tmp_path: Path) -> None:
    command = [sys.executable, *PROVE, framework, f"--out={tmp_path}"]
    with with_signals():
        running = subprocess.Popen(command, cwd=ROOT, stdout=PIPE, stderr=PIPE, text=True)
    assert running.stdout
    assert any(" at a time" in line for line in iter(running.stdout.readline, ""))
    (grid,) = children(running.pid)
    while not children(grid):
        assert running.poll() is None
    started = descendants(running.pid)
    running.send_signal(signal.SIGHUP)
    _, complained = running.communicate(timeout=60)
    assert complained.count("error:") == 1
    assert running.returncode == 143
    require_gone(started)
