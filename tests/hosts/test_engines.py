"""Processes that a framework's own engine joins train as one host, and end and restart together."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL
from typing import Final

import numpy as np
import pytest
from safetensors.numpy import load_file
from started import ROOT, SECONDS, children, free_port, python, with_signals

from common.records.record import read_record

pytestmark = pytest.mark.only("pytorch", "tensorflow", "jax")

FLAGS: Final = (
    *("--dataset=synthetic", "--train-examples=300", "--test-examples=101", "--batch-size=7"),
    *("--width=4", "--lr=0.03", "--dtype=float64", "--threads=1"),
)
"""Minibatches that are uneven on two and on three devices."""

LIMIT = 1e-10
SOON = 120
"""Seconds in which all have ended; docs/hosts.md tells how many it takes."""


@dataclass(frozen=True)
class Engine:
    """Starts runs of a framework in so many processes, one a device; what they say is a file."""

    framework: str
    count: int
    said: Path

    def start(self, *flags: str, torchrun: tuple[str, ...] = ()) -> "list[subprocess.Popen[str]]":
        """The commands that a user starts: for PyTorch one, torchrun."""
        command, ranks = ["-m", f"frameworks.{self.framework}.concise", *FLAGS, *flags], self.count
        if self.framework == "pytorch":
            how = ("--standalone", f"--nproc-per-node={self.count}", *torchrun)
            command, ranks = ["-m", "torch.distributed.run", *how, *command], 1
        hosts = [f"localhost:{free_port()}" for _ in range(self.count)]
        with with_signals(), self.said.open("a") as said:
            return [
                subprocess.Popen(
                    [sys.executable, *command],
                    cwd=ROOT,
                    env={**os.environ, **self.variables(rank, hosts)},
                    stdout=said,
                    stderr=said,
                    text=True,
                    start_new_session=True,
                )
                for rank in range(ranks)
            ]

    def variables(self, rank: int, hosts: list[str]) -> dict[str, str]:
        """What tells a process which one it is; torchrun does for PyTorch's."""
        if self.framework == "pytorch":
            return {}
        if self.framework == "tensorflow":
            task = {"type": "worker", "index": rank}
            return {"TF_CONFIG": json.dumps({"cluster": {"worker": hosts}, "task": task})}
        known = {"COORDINATOR_ADDRESS": hosts[0], "NUM_PROCESSES": self.count, "PROCESS_ID": rank}
        return {f"JAX_{name}": str(value) for name, value in known.items()}

    def kill_second(self, started: "list[subprocess.Popen[str]]", kept: Path) -> None:
        """Kills the second process that trains, after a checkpoint."""
        limit = time.monotonic() + SECONDS
        while not list(kept.glob("*-step*.json")):
            assert time.monotonic() < limit, self.said.read_text()
            time.sleep(0.05)
        torchrun = self.framework == "pytorch"
        pids = children(started[0].pid) if torchrun else [each.pid for each in started]
        os.kill(pids[1], SIGKILL)


@pytest.mark.hosts
@pytest.mark.parametrize(("count", "mode"), [(2, "per-device"), (3, "sync")])
def test_processes_compute_what_one_host_does(
    framework: str, count: int, mode: str, tmp_path: Path
) -> None:
    engine = Engine(framework, count, tmp_path / "said")
    flags = "--steps=3", f"--batch-norm={mode}"
    for process in engine.start(*flags, f"--out={tmp_path / 'several'}"):
        assert process.wait(SECONDS) == 0, engine.said.read_text()
    assert engine.said.read_text().count("test acc: ") == 1
    command = "-m", f"frameworks.{framework}.concise", *FLAGS, *flags
    one = python(*command, f"--devices={count}", f"--out={tmp_path / 'one'}")
    assert one.returncode == 0, one.stderr
    name = f"{framework}-concise-{count}dev"
    paths = [tmp_path / folder / f"{name}.json" for folder in ("several", "one")]
    several, alone = map(read_record, paths)
    assert several.cluster
    assert len(several.cluster.hosts) == count
    np.testing.assert_allclose(several.losses, alone.losses, rtol=0, atol=LIMIT)
    ours, theirs = (load_file(path.with_suffix(".safetensors")) for path in paths)
    assert ours.keys() == theirs.keys()
    for tensor in ours:
        np.testing.assert_allclose(ours[tensor], theirs[tensor], rtol=0, atol=LIMIT, err_msg=tensor)


@pytest.mark.faults
def test_a_killed_process_ends_all_others(framework: str, tmp_path: Path) -> None:
    engine, kept = Engine(framework, 2, tmp_path / "said"), tmp_path / "kept"
    files = f"--checkpoint-dir={kept}", f"--out={tmp_path}", "--checkpoint-every=2"
    started = engine.start("--epochs=100000", *files)
    try:
        engine.kill_second(started, kept)
        ends = [each.wait(SOON) for each in started]
    finally:
        for each in started:
            each.kill()
    assert 0 not in ends, engine.said.read_text()


@pytest.mark.faults
@pytest.mark.only("pytorch")
def test_torchrun_restarts_a_run_which_resumes_from_its_last_checkpoint(
    framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else processes look for each other where those before the restart were.
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    weights = {}
    for name in ("whole", "killed"):
        folder, engine = tmp_path / name, Engine(framework, 2, tmp_path / f"{name}.txt")
        flags = [f"--checkpoint-dir={folder}", f"--out={folder}", f"--save-weights={folder}.w"]
        flags += ["--steps=40", "--checkpoint-every=2", "--resume"]
        (run,) = engine.start(*flags, torchrun=("--max-restarts=1",))
        if name == "killed":
            engine.kill_second([run], folder)
        assert run.wait(SECONDS) == 0, engine.said.read_text()
        weights[name] = load_file(tmp_path / f"{name}.w")
        resumed = f"resuming from {folder}" in engine.said.read_text()
        assert resumed == (name == "killed")
    assert weights["whole"].keys() == weights["killed"].keys()
    for tensor, values in weights["whole"].items():
        assert values.tobytes() == weights["killed"][tensor].tobytes(), tensor
