"""The recipes in `launch/` on virtual hosts, and the variables that they set.

The module is a stand-in, so that this takes no framework; so are Slurm's commands.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hosts_cluster import Hosts, hosts as hosts

ROOT: Final = Path(__file__).parents[2]
STAND_IN: Final = """
import argparse, json, pathlib, socket
from common.hosts.launchers import launched
made = argparse.ArgumentParser()
made.add_argument("--coordinator")
made.add_argument("--hosts", type=int)
made.add_argument("--host-rank", type=int)
flags, rest = made.parse_known_args()
found = launched(__spec__.name.split(".")[1], {"launcher": "auto", **vars(flags)})
process = found.process
seen = [found.launcher, process.rank, process.count, found.coordinator, socket.gethostname(), *rest]
pathlib.Path(f"seen-{process.rank}").write_text(json.dumps(seen))
"""
OTHERS: Final = {
    "FRAMEWORK": "jax",
    "CHAPTER": "scratch",
    "DEVICES": "4",
    "FLAGS": "--a 1 --b",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Laid out as the repository's root, with stand-ins for the modules."""
    (tmp_path / "launch").symlink_to(ROOT / "launch")
    for package, chapter in (("pytorch", "concise"), ("jax", "scratch")):
        (made := tmp_path / "frameworks" / package).mkdir(parents=True)
        (made / "__init__.py").touch()
        (made.parent / "__init__.py").touch()
        (made / f"{chapter}.py").write_text(STAND_IN)
    return tmp_path


def on_both(hosts: Hosts, folder: Path, variables: Mapping[str, str], *commands: str) -> list[Any]:
    """The variables of two processes, by rank, started by shells on two hosts."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **variables}
    started = [
        hosts.start(name, "sh", "-ec", f"cd '{folder}'; {command}", env=os.environ | environment)
        for name, command in zip(hosts.nodes, commands, strict=True)
    ]
    assert [each.wait(60) for each in started] == [0, 0]
    return [json.loads((folder / f"seen-{rank}").read_text()) for rank in range(2)]


def expected(launcher: str, coordinator: object, rest: str) -> list[list[Any]]:
    return [[launcher, rank, 2, coordinator, f"n{rank + 1}", *rest.split()] for rank in range(2)]


def test_by_hand_and_kubernetes(hosts: Hosts, folder: Path) -> None:
    lines = [f"launch/by_hand.sh n1:29500 2 {rank}" for rank in range(2)]
    seen = on_both(hosts, folder, OTHERS, *lines)
    assert seen == expected("by hand", ["n1", 29500], "--devices 4 --a 1 --b")
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed here")
    variables, _, job = yaml.safe_load_all((ROOT / "launch/kubernetes.yaml").read_text())
    (line,) = job["spec"]["template"]["spec"]["containers"][0]["args"]
    lines = [f"export JOB_COMPLETION_INDEX={rank}; {line}" for rank in range(2)]
    seen = on_both(hosts, folder, variables["data"], *lines)
    rest = "--devices 2 --preset quick --threads 2 --join-timeout 1800"
    assert seen == expected("by hand", ["parity-0.parity", 29500], rest)


@pytest.mark.only("pytorch")
def test_torchrun(hosts: Hosts, folder: Path) -> None:
    seen = on_both(hosts, folder, {}, *2 * ["launch/torchrun.sh n1:29400 2"])
    assert seen == expected("torchrun", ["n1", seen[0][3][1]], "--devices 2 --preset quick")


SRUN: Final = """#!/bin/bash
echo "srun $*" >>calls
while [[ $1 == --* ]]; do shift; done
export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=n[1-2]
for rank in 0 1; do SLURM_PROCID=$rank "$@" & done
wait
mkdir -p results/job-7
touch $WRITES
exit $STATUS
"""
SCONTROL: Final = """#!/bin/bash
echo "scontrol $*" >>calls
"""


@pytest.mark.parametrize(
    ("status", "writes", "requeued"), [(0, True, False), (143, True, True), (143, False, False)]
)
def test_slurm_requeues_a_job_that_stopped_with_a_new_checkpoint(
    folder: Path, status: int, writes: bool, requeued: bool
) -> None:
    for name, script in (("srun", SRUN), ("scontrol", SCONTROL)):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    job = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "2", "STATUS": str(status)}
    kept = {"WRITES": "results/job-7/step1.json" if writes else "calls"}
    environment = {"PATH": path, "PYTHONPATH": str(ROOT), **OTHERS, **job, **kept}
    done = subprocess.run(["bash", "launch/slurm.sbatch"], cwd=folder, env=environment, check=False)
    assert done.returncode == status
    first, *rest = (folder / "calls").read_text().splitlines()
    assert first.startswith("srun --kill-on-bad-exit=1 --cpus-per-task=2 python -m frameworks.jax.")
    assert rest == (["scontrol requeue 7"] if requeued else [])
    flags = ["--devices", "4", "--a", "1", "--b", "--checkpoint-dir", "results/job-7", "--resume"]
    for rank in range(2):
        told = json.loads((folder / f"seen-{rank}").read_text())
        assert (told[:3], told[3][0], told[5:]) == (["Slurm", rank, 2], "n1", flags)
