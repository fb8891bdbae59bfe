"""Virtual hosts, and what processes find there that a real srun or mpirun has started."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hosts_cluster import Hosts, why_not
from hosts_fixtures import hosts as hosts, slurm as slurm
from hosts_processes import processes, tell, wait
from started import alive

ROOT = Path(__file__).parents[2]
WHO = """
import json
from dataclasses import astuple
from common.hosts.launchers import ByHand, launched
found = launched("jax", "auto", ByHand())
process = found.process
print(json.dumps([found.launcher, process.rank, process.count, process.local_rank,
                  process.local_count, found.coordinator, __import__("socket").gethostname()]))
"""
LISTEN = """
import socket
server = socket.create_server(("", 7000))
print("up", flush=True)
print(server.accept()[0].recv(1), flush=True)
"""
CALL = (
    "import socket; s = socket.create_connection(('n1', 7000)); print('in', flush=True); s.recv(1)"
)
HOLD = """
import sys, time
sys.path.insert(0, sys.argv[1])
from hosts_cluster import Hosts
with Hosts(2) as hosts:
    hosts.start("n2", "sleep", "1000")
    print(*hosts.inits.values(), hosts.folder, flush=True)
    time.sleep(1000)
"""


def who(hosts: Hosts, *command: str) -> list[list[object]]:
    """What each process says of itself, by rank."""
    path = {"PYTHONPATH": str(ROOT)}
    done = hosts.run(
        "ctl", *command, sys.executable, "-c", WHO, env=path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return sorted(json.loads(line) for line in done.stdout.splitlines())


def test_tasks_of_srun_know_who_they_are(slurm: Hosts) -> None:
    found = who(slurm, "srun", "--nodes=2", "--ntasks-per-node=2")
    port = found[0][5][1]  # type: ignore[index]
    assert found == [
        ["Slurm", rank, 4, rank % 2, 2, ["n1", port], f"n{rank // 2 + 1}"] for rank in range(4)
    ]
    assert port > 61000


def test_what_runs_beside_srun_is_alone(slurm: Hosts) -> None:
    assert who(slurm, "salloc", "--quiet", "--nodes=2") == [["", 0, 1, 0, 1, None, "ctl"]]
    assert who(slurm, "srun", "--nodes=1", "--ntasks=1") == [["", 0, 1, 0, 1, None, "n1"]]


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no Open MPI here")
def test_processes_of_mpirun_know_who_they_are(slurm: Hosts) -> None:
    script = '#!/bin/sh\nmpirun --allow-run-as-root --oversubscribe "$@"'
    job = slurm.folder / "job.sh"
    job.write_text(script)
    out = slurm.folder / "mpirun.out"
    env = {"PYTHONPATH": str(ROOT)}
    command = ["sbatch", "--wait", "--quiet", "--nodes=2", "--ntasks-per-node=2", f"--output={out}"]
    slurm.run("ctl", *command, str(job), sys.executable, "-c", WHO, env=env, check=True)
    found = sorted(
        json.loads(line) for line in out.read_text().replace("][", "]\n[").split("\n") if line
    )
    at = [slurm.addresses["n1"], found[0][5][1]]
    assert found == [
        ["Open MPI", rank, 4, rank % 2, 2, at, f"n{rank // 2 + 1}"] for rank in range(4)
    ]


def listen(hosts: Hosts) -> "subprocess.Popen[bytes]":
    """Starts what the other host can call from now on."""
    listening = hosts.start("n1", sys.executable, "-c", LISTEN, stdout=subprocess.PIPE)
    assert listening.stdout
    assert listening.stdout.readline() == b"up\n"
    return listening


def test_hosts_have_names_and_reach_each_other(hosts: Hosts) -> None:
    listening = listen(hosts)
    call = "import socket; socket.create_connection(('n1', 7000)).send(b'x')"
    hosts.run("n2", sys.executable, "-c", call, check=True)
    assert listening.communicate(timeout=10)[0] == b"b'x'\n"
    for name in hosts.nodes:
        assert hosts.run(name, "hostname", capture_output=True).stdout.decode() == f"{name}\n"


def test_a_power_cut_is_silent(hosts: Hosts) -> None:
    listening = listen(hosts)
    calling = hosts.start("n2", sys.executable, "-c", CALL, stdout=subprocess.PIPE)
    assert calling.stdout
    assert calling.stdout.readline() == b"in\n"
    hosts.kill("n1")
    assert listening.wait(5) != 0
    with pytest.raises(subprocess.TimeoutExpired):
        calling.wait(1)
    hosts.run("n2", "true", check=True)
    tell(calling, signal.SIGKILL)


def test_a_frozen_host_goes_on_when_thawed(hosts: Hosts) -> None:
    ticking = hosts.start(
        "n1", "sh", "-c", "while sleep 0.05; do echo; done", stdout=subprocess.PIPE
    )
    assert ticking.stdout
    output = ticking.stdout.fileno()
    assert os.read(output, 1 << 16)
    hosts.freeze("n1")
    while select.select([output], [], [], 0)[0]:
        os.read(output, 1 << 16)
    assert not select.select([output], [], [], 0.5)[0]
    hosts.thaw("n1")
    assert os.read(output, 1 << 16)
    hosts.freeze("n1")  # and so it ends


def test_nothing_is_left_of_hosts() -> None:
    if missing := why_not():
        pytest.skip(missing)
    with Hosts(2) as hosts:
        hosts.start("n2", "sleep", "1000")
        wait(lambda: len(processes(hosts.inits["n2"])) == 1, "no process on n2")
        sleeping = processes(hosts.inits["n2"])
        left = [*hosts.inits.values(), *sleeping]
    assert not [process for process in left if alive(process)]
    assert not hosts.folder.exists()


def test_hosts_end_with_a_test_that_is_killed() -> None:
    if missing := why_not():
        pytest.skip(missing)
    support = str(ROOT / "tests" / "support")
    holding = subprocess.Popen([sys.executable, "-c", HOLD, support], stdout=subprocess.PIPE)
    assert holding.stdout
    *inits, folder = holding.stdout.readline().decode().split()
    assert len(inits) == 3
    holding.kill()
    holding.communicate()
    wait(lambda: not any(alive(int(process)) for process in inits), "hosts that are left")
    shutil.rmtree(folder)
