"""Runs of the concise chapter over processes that each framework's own engine joins."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from started import ROOT, SECONDS, children, free_port, with_signals

FLAGS: Final = (
    *("--dataset=synthetic", "--train-examples=300", "--test-examples=101", "--batch-size=7"),
    *("--width=4", "--lr=0.03", "--dtype=float64", "--threads=1"),
)
"""Minibatches that are uneven on two and on three devices."""


@dataclass(frozen=True)
class Engine:
    """Starts runs of a framework in so many processes, one a device; what they say is a file."""

    framework: str
    count: int
    said: Path

    def start(self, *flags: str, torchrun: tuple[str, ...] = ()) -> "list[subprocess.Popen[str]]":
        """The commands that a user starts: for PyTorch one, torchrun."""
        command = ["-m", f"frameworks.{self.framework}.concise", *FLAGS, *flags]
        if self.framework == "pytorch":
            how = ("--standalone", f"--nproc-per-node={self.count}", *torchrun)
            command = ["-m", "torch.distributed.run", *how, *command]
        ports = [free_port() for _ in range(self.count)]
        ranks = range(1 if self.framework == "pytorch" else self.count)
        with with_signals(), self.said.open("a") as said:
            return [
                subprocess.Popen(
                    [sys.executable, *command],
                    cwd=ROOT,
                    env={**os.environ, **self.variables(rank, ports)},
                    stdout=said,
                    stderr=said,
                    text=True,
                    start_new_session=True,
                )
                for rank in ranks
            ]

    def variables(self, rank: int, ports: list[int]) -> dict[str, str]:
        """What tells a process which one it is."""
        places = [f"localhost:{port}" for port in ports]
        task = {"cluster": {"worker": places}, "task": {"type": "worker", "index": rank}}
        by_framework = {
            "pytorch": {},
            "tensorflow": {"TF_CONFIG": json.dumps(task)},
            "jax": {
                "JAX_COORDINATOR_ADDRESS": places[0],
                "JAX_NUM_PROCESSES": str(self.count),
                "JAX_PROCESS_ID": str(rank),
            },
        }
        return by_framework[self.framework]

    def trainers(self, started: "list[subprocess.Popen[str]]") -> list[int]:
        """The processes that train."""
        if self.framework == "pytorch":
            return children(started[0].pid)
        return [each.pid for each in started]

    def finish(self, *flags: str, torchrun: tuple[str, ...] = ()) -> None:
        """Runs all to the end, which has to be good."""
        for each in self.start(*flags, torchrun=torchrun):
            assert each.wait(SECONDS) == 0, self.said.read_text()
