"""On Windows every command ends with one line; where a fork is not safe, processes are spawned.

Both are simulated: on Windows Python has no `os.fork`, on macOS `sys.platform` is "darwin".
"""

import subprocess
import sys
from pathlib import Path

import pytest

from common.backends.frameworks import FRAMEWORKS

ROOT = Path(__file__).parents[2]
COMMANDS = (
    "common.parity",
    "common.grid",
    "bench",
    "notebooks.build",
    "silent.jax_last_microbatch",
)

WINDOWS = """
import os, runpy, sys, types
del os.fork
sys.modules["nox"] = types.ModuleType("nox")  # the common environment does not have it
runpy.{run}
"""
LINE = "this is Windows, which cannot fork a process: start it on Linux, on macOS, or in WSL\n"

MACOS = """
import sys
sys.platform = "darwin"
sys.addaudithook(lambda event, _: event == "os.fork" and sys.exit("it forks"))
from common.backends.devices import Process
from common.backends.forking import in_processes

def work(process):
    print(process.rank, "started", flush=True)

if __name__ == "__main__":
    in_processes(work, [Process(rank, 2) for rank in range(2)], [])
"""


@pytest.mark.parametrize(
    "run",
    [
        "run_path('noxfile.py')",
        *(f"run_module({name!r}, run_name='__main__')" for name in COMMANDS),
        *(f"run_module('frameworks.{name}.scratch')" for name in FRAMEWORKS),
    ],
)
def test_on_windows_a_command_ends_with_one_line(run: str) -> None:
    command = [sys.executable, "-c", WINDOWS.format(run=run)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", LINE)


def test_on_macos_processes_of_devices_are_spawned(tmp_path: Path) -> None:
    script = tmp_path / "devices.py"
    script.write_text(MACOS)
    done = subprocess.run(
        [sys.executable, script],
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["0 started", "1 started"]
