"""The recipes in `launch/` on virtual hosts: what the module that they start is told.

The module is a stand-in, so that this takes no framework.
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hosts_cluster import Hosts, hosts as hosts, slurm as slurm, wait
from hosts_jobs import Job, laid_out

ROOT: Final = Path(__file__).parents[2]
STAND_IN: Final = """
import argparse, json, os, pathlib, signal, socket, sys, time
from dataclasses import asdict
from common.hosts.launchers import ByHand, launched
made = argparse.ArgumentParser()
made.add_argument("--coordinator")
made.add_argument("--hosts", type=int)
made.add_argument("--host-rank", type=int)
flags, rest = made.parse_known_args()
found = launched(__spec__.name.split(".")[1], "auto", ByHand(**vars(flags)))
process, host = found.process, socket.gethostname()
seen = [found.launcher, process.rank, process.count, found.coordinator, host, *rest]
restart = os.environ.get("SLURM_RESTART_COUNT", "")
pathlib.Path(f"seen-{process.rank}{restart}.part").write_text(json.dumps(seen))
if "--resume" in rest and not restart:
    signal.signal(signal.SIGUSR1, lambda *_: sys.exit(143))
    pathlib.Path(f"waits-{process.rank}").touch()
    if "--cannot-begin" in rest:
        sys.exit(143 if process.rank else 2)
    kept = pathlib.Path(rest[rest.index("--checkpoint-dir") + 1])
    kept.mkdir(parents=True, exist_ok=True)
    kept.joinpath("step1.json").touch()
    time.sleep(60)
    sys.exit(1)
pathlib.Path(f"seen-{process.rank}{restart}.part").rename(f"seen-{process.rank}{restart}")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Laid out as the repository's root, with stand-ins for the modules."""
    laid_out(tmp_path)
    for package in ("frameworks", "frameworks/pytorch", "frameworks/jax"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "frameworks/pytorch/concise.py").write_text(STAND_IN)
    (tmp_path / "frameworks/jax/scratch.py").write_text(STAND_IN)
    return tmp_path


@pytest.fixture
def environment() -> Mapping[str, str]:
    """Where `python` is this one, and finds what is common to all frameworks."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


OTHERS: Final = {"FRAMEWORK": "jax", "CHAPTER": "scratch", "DEVICES": "4", "FLAGS": "--a 1 --b"}


def seen(folder: Path, restart: str = "") -> list[list[Any]]:
    """What the two processes were told, by rank."""
    return [json.loads((folder / f"seen-{rank}{restart}").read_text()) for rank in range(2)]


def expected(launcher: str, coordinator: object, *rest: str) -> list[list[Any]]:
    return [[launcher, rank, 2, coordinator, f"n{rank + 1}", *rest] for rank in range(2)]


def on_both(hosts: Hosts, folder: Path, environment: Mapping[str, str], *commands: str) -> None:
    """Runs a shell's commands at once, each on one host."""
    started = [
        hosts.start(name, "sh", "-ec", f"cd '{folder}'; {command}", env=environment)
        for name, command in zip(hosts.nodes, commands, strict=True)
    ]
    assert [each.wait(60) for each in started] == [0, 0]


def test_by_hand(hosts: Hosts, folder: Path, environment: Mapping[str, str]) -> None:
    lines = [f"launch/by_hand.sh n1:29500 2 {rank}" for rank in range(2)]
    on_both(hosts, folder, {**environment, **OTHERS}, *lines)
    flags = "--devices 4 --a 1 --b"
    assert seen(folder) == expected("by hand", ["n1", 29500], *flags.split())


def test_kubernetes(hosts: Hosts, folder: Path, environment: Mapping[str, str]) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed here")
    variables, _, job = yaml.safe_load_all((ROOT / "launch/kubernetes.yaml").read_text())
    (line,) = job["spec"]["template"]["spec"]["containers"][0]["args"]
    lines = [f"export JOB_COMPLETION_INDEX={rank}; {line}" for rank in range(2)]
    on_both(hosts, folder, {**environment, **variables["data"]}, *lines)
    flags = ["--devices", "2", "--preset", "quick", "--threads", "2", "--join-timeout", "1800"]
    assert seen(folder) == expected("by hand", ["parity-0.parity", 29500], *flags)


@pytest.mark.only("pytorch")
def test_torchrun(hosts: Hosts, folder: Path, environment: Mapping[str, str]) -> None:
    on_both(hosts, folder, environment, *2 * ["launch/torchrun.sh n1:29400 2"])
    found = seen(folder)
    flags = ["--devices", "2", "--preset", "quick"]
    assert found == expected("torchrun", ["n1", found[0][3][1]], *flags)


def test_slurm_does_not_requeue_a_job_that_cannot_begin(
    slurm: Hosts, folder: Path, environment: Mapping[str, str]
) -> None:
    told = Job(slurm, folder, {**environment, **OTHERS, "FLAGS": "--cannot-begin"}).end()
    assert "JobState=FAILED" in told
    assert "Restarts=0" in told
    assert "ExitCode=143:0" in told


@pytest.mark.parametrize("kept", ["", "results/job-1234567"])
def test_slurm_requeues_a_job_that_was_asked_to_stop(
    slurm: Hosts, folder: Path, environment: Mapping[str, str], kept: str
) -> None:
    job = Job(slurm, folder, {**environment, **OTHERS, **({"KEPT": kept} if kept else {})})
    wait(lambda: all((folder / f"waits-{rank}").exists() for rank in range(2)), "no job")
    job.ask_to_stop()
    wait(lambda: all((folder / f"seen-{rank}1").exists() for rank in range(2)), "no", 60)
    told = job.end()
    assert "Restarts=1" in told
    assert "JobState=COMPLETED" in told
    found = seen(folder, "1")
    kept = kept or f"results/job-{job.number}"
    flags = f"--devices 4 --a 1 --b --checkpoint-dir {kept} --resume"
    assert found == expected("Slurm", ["n1", found[0][3][1]], *flags.split())
    text = (ROOT / "launch/slurm.sbatch").read_text()
    assert re.search("^#SBATCH --signal=USR1@[0-9]+ ", text, re.MULTILINE)
