"""On Windows, every command says in a line where it runs; on macOS, it runs.

Both are simulated: `tests/support/elsewhere` hides from Python what they do not have.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from started import free_port
from toy_house import FLAGS, KILLED, PARITY, PLANNED, RESULTS, ROOT, house as house, python

WINDOWS, MACOS = (
    {"ELSEWHERE": name, "PYTHONPATH": f"{ROOT / 'tests/support/elsewhere'}{os.pathsep}{ROOT}"}
    for name in ("windows", "macos")
)
NOX = """
import runpy, sys, types
sys.modules["nox"] = types.ModuleType("nox")  # the common environment does not have it
runpy.run_path("noxfile.py")
"""
LINE = "this is Windows, which cannot fork a process: start it on Linux, on macOS, or in WSL\n"

DEVICES = """
from common.backends.devices import Process
from common.backends.forking import in_processes
from common.base.network import interface_of

def work(process):
    print(process.rank, flush=True)

if __name__ == "__main__":
    in_processes(work, [Process(rank, 2) for rank in range(2)], [])
    print(interface_of("127.0.0.1"))
"""


def commands() -> Iterator[str]:
    """The modules that can be started."""
    folders = "common", "frameworks", "bench", "fuzz", "notebooks", "silent"
    for path in chain.from_iterable(ROOT.glob(f"{folder}/**/*.py") for folder in folders):
        if path.name == "__main__.py" or "\nif __name__ ==" in path.read_text(encoding="utf-8"):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")


@pytest.mark.parametrize(
    "words",
    [("-c", NOX), *(("-m", each) for each in sorted(commands()))],
    ids=["nox", *sorted(commands())],
)
def test_on_windows_every_command_says_where_it_runs(words: tuple[str, str]) -> None:
    done = python(ROOT, *words, **WINDOWS)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", LINE)


def test_on_macos_runs_resume_and_are_compared(house: Path) -> None:
    grid = python(house, "-m", "common.grid", "toy", "--chapter=toy", "--out=out", **MACOS)
    assert (grid.returncode, grid.stderr) == (0, "")
    assert grid.stdout.count("test acc: ") == 6
    checkpoints = "--devices=3", "--checkpoint-dir=kept", "--checkpoint-every=3"
    python(house, "-c", KILLED, *FLAGS, *checkpoints, **MACOS)
    resumed = python(house, "-m", "frameworks.toy.toy", *FLAGS, *checkpoints, "--resume", **MACOS)
    assert "resuming from kept/toy-toy-columns-3dev-step3.json" in resumed.stderr
    done = python(house, "-m", *PARITY, *PLANNED, **MACOS)
    assert done.returncode == 0, done.stderr


def test_on_macos_processes_of_devices_are_not_forked(tmp_path: Path) -> None:
    (tmp_path / "devices.py").write_text(DEVICES)
    done = python(tmp_path, "devices.py", **MACOS)
    assert done.stderr == ""
    assert sorted(done.stdout.split()) == ["0", "1", "lo"]


def test_on_macos_processes_of_hosts_are_not_forked(house: Path) -> None:
    flags = [
        *FLAGS,
        "--batch-size=8",
        "--devices=2",
        f"--coordinator=localhost:{free_port()}",
        "--hosts=2",
        "--join-timeout=20",
    ]
    command = [sys.executable, "-m", "frameworks.toy.toy", *flags]
    env = {**os.environ, **MACOS}
    runs = [
        subprocess.Popen([*command, f"--host-rank={rank}"], cwd=house, env=env) for rank in range(2)
    ]
    assert [run.wait() for run in runs] == [0, 0]
    assert (house / RESULTS / "toy-toy-columns-2dev.json").exists()
