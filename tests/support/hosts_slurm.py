"""Slurm on the virtual hosts: `ctl` decides, n1, n2, ... compute."""

import os
import subprocess
from typing import TYPE_CHECKING, Final

from hosts_processes import wait

if TYPE_CHECKING:
    from hosts_cluster import Hosts

COMMANDS: Final = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "sinfo")
PACKAGES: Final = ("slurmctld", "slurmd", "slurm-client", "munge")

CONFIGURATION: Final = {
    "ClusterName": "virtual",
    "SlurmctldHost": "ctl",
    "SlurmUser": "root",
    "SlurmdUser": "root",
    "AuthType": "auth/munge",
    "AuthInfo": "socket={folder}/munge.socket,cred_expire=5",
    "StateSaveLocation": "{folder}/state",
    "SlurmdSpoolDir": "{folder}/spool-%n",
    "SlurmctldPidFile": "{folder}/slurmctld.pid",
    "SlurmdPidFile": "{folder}/slurmd-%n.pid",
    "SlurmctldLogFile": "{folder}/slurmctld.log",
    "SlurmdLogFile": "{folder}/slurmd-%n.log",
    "ProctrackType": "proctrack/linuxproc",  # without it every task fails, and srun ends with 0
    "TaskPlugin": "task/none",
    "MpiDefault": "none",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_CPU",
    "SlurmdParameters": "config_overrides",  # more processors than there are
    "ReturnToService": "2",
    "KillWait": "5",
    "MinJobAge": "300",
    # A job starts at once, and a requeued one does not wait for two minutes.
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=1",
    "NodeName": "n[1-{nodes}] CPUs=4 State=UNKNOWN",
    "PartitionName": "all Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
}


def start(hosts: "Hosts") -> None:
    """Starts Slurm's daemons; returns once every node is idle. Raises OSError."""
    folder, nodes = hosts.folder, hosts.nodes
    lines = [f"{name}={value}" for name, value in CONFIGURATION.items()]
    text = "\n".join(lines).format(folder=folder, nodes=len(nodes))
    (folder / "slurm.conf").write_text(text + "\n")
    (folder / "state").mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    parts = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
    files = [
        f"--{flag}={folder}/munge.{end}" for flag, end in {**parts, "seed-file": "seed"}.items()
    ]
    _daemon(hosts, "ctl", "munged", "--foreground", "--force", "--num-threads=2", *files)
    wait((folder / "munge.socket").exists, "no munged")
    _daemon(hosts, "ctl", "slurmctld", "-D")
    for node in nodes:
        _daemon(hosts, node, "slurmd", "-D", "-N", node)
    wait(lambda: idle(hosts) == len(nodes), "not every node of Slurm is idle")


def idle(hosts: "Hosts") -> int:
    """How many nodes wait for work."""
    found = hosts.run(
        "ctl", "sinfo", "--noheader", "--states=idle", "--format=%D", capture_output=True, text=True
    )
    return int(found.stdout.strip() or 0)


def _daemon(hosts: "Hosts", name: str, *what: str) -> None:
    with (hosts.folder / f"{what[0]}-{name}.log").open("ab") as log:
        hosts.start(name, *what, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
