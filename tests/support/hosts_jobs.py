"""Jobs of launch/slurm.sbatch on virtual hosts: what they train, and leave."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hosts_cluster import Hosts, processes, send, wait

from common.records.record import Record
from common.records.store import read_record

ROOT: Final = Path(__file__).parents[2]
FLAGS: Final = (
    "--dataset synthetic --train-examples 60 --test-examples 20 --batch-size 15 --epochs 5 "
    "--dtype float64 --checkpoint-every 1 --width 4"
)
LIMIT: Final = 300
"""Seconds in which a job comes to an end, however busy the machine."""


class Job:
    """A job of launch/slurm.sbatch, submitted in a folder, on hosts that have Slurm."""

    def __init__(self, hosts: Hosts, folder: Path, framework: str, flags: str) -> None:
        """Submits it; `python` is this one there, and finds the project's modules."""
        self.hosts, self.folder, self.framework = hosts, folder, framework
        folder.mkdir(exist_ok=True)
        (folder / "launch").symlink_to(ROOT / "launch")
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        asked = {"FRAMEWORK": framework, "CHAPTER": "concise", "DEVICES": "2", "FLAGS": flags}
        told = {**asked, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = f"cd '{folder}'; sbatch --parsable launch/slurm.sbatch"
        how = {"capture_output": True, "text": True}
        done = hosts.run("ctl", "sh", "-ec", command, env=told, **how)
        assert done.returncode == 0, done.stderr
        self.number = done.stdout.strip()

    def says(self) -> str:
        """What Slurm says of it."""
        show = ["scontrol", "show", "job", self.number]
        told: str = self.hosts.run("ctl", *show, capture_output=True, text=True).stdout
        return told

    def said(self) -> str:
        """What its processes have said."""
        return "".join(path.read_text() for path in self.folder.glob("slurm-*.out"))

    def record(self) -> Path:
        """Where its record is."""
        return self.folder / "results" / f"{self.framework}-concise-2dev.json"

    def end(self) -> str:
        """What Slurm says of it once it has come to its end, well or not."""
        wait(lambda: _over(self.says()), "the job still runs", LIMIT)
        return self.says()

    def require_well(self) -> Record:
        """Its record, once it has ended well."""
        told = self.end()
        assert "JobState=COMPLETED" in told, (told, self.said())
        return read_record(self.record())

    @contextmanager
    def held(self) -> Iterator[None]:
        """Meanwhile its processes on the first host stand still, soon after its first step."""
        kept = self.folder / f"results/job-{self.number}"
        limit = time.monotonic() + LIMIT
        while not list(kept.glob("*-step*.json")):
            assert time.monotonic() < limit, (self.says(), self.said())
            time.sleep(0.002)
        held = list(self._processes())
        for each in held:
            send(each, signal.SIGSTOP)
        try:
            yield
        finally:
            for each in held:
                send(each, signal.SIGCONT)

    def _processes(self) -> Iterator[int]:
        for each in processes(self.hosts.inits["n1"]):
            line = Path(f"/proc/{each}/cmdline").read_bytes()
            if f"frameworks.{self.framework}".encode() in line and b"srun" not in line:
                yield each

    def ask_to_stop(self) -> None:
        """Sends the signal of --signal: the steps get it, the script does not."""
        self.hosts.run("ctl", "scancel", "--signal=USR1", self.number, check=True)
        time.sleep(1)


def _over(told: str) -> bool:
    states = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
    return any(f"JobState={state}" in told for state in states)
