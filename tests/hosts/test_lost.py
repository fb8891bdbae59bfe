"""A killed process ends all others of its run, and a restart costs the steps since a checkpoint."""

import os
import time
from pathlib import Path
from signal import SIGKILL

import pytest
from engines import Engine
from safetensors.numpy import load_file
from started import SECONDS

pytestmark = [pytest.mark.faults, pytest.mark.only("pytorch", "tensorflow", "jax")]

SOON = 120
"""Seconds in which all have ended; docs/hosts.md tells how many it takes."""


def wait_for_checkpoint(folder: Path, engine: Engine) -> None:
    limit = time.monotonic() + SECONDS
    while not list(folder.glob("*-step*.json")):
        assert time.monotonic() < limit, engine.said.read_text()
        time.sleep(0.05)


def test_a_killed_process_ends_all_others(framework: str, tmp_path: Path) -> None:
    engine, kept = Engine(framework, 2, tmp_path / "said"), tmp_path / "kept"
    files = f"--checkpoint-dir={kept}", f"--out={tmp_path}", "--checkpoint-every=2"
    started = engine.start("--epochs=100000", *files)
    try:
        wait_for_checkpoint(kept, engine)
        os.kill(engine.trainers(started)[1], SIGKILL)
        ends = [each.wait(SOON) for each in started]
    finally:
        for each in started:
            each.kill()
    assert 0 not in ends, engine.said.read_text()


@pytest.mark.only("pytorch")
def test_torchrun_restarts_a_run_which_resumes(
    framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else processes look for each other where those before the restart were.
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    weights = {}
    for name in ("whole", "killed"):
        folder = tmp_path / name
        engine = Engine(framework, 2, tmp_path / f"{name}.txt")
        flags = f"--checkpoint-dir={folder}", f"--out={folder}", f"--save-weights={folder}.w"
        again = ("--max-restarts=1",)
        (run,) = engine.start(
            "--steps=40", "--checkpoint-every=2", "--resume", *flags, torchrun=again
        )
        if name == "killed":
            wait_for_checkpoint(folder, engine)
            os.kill(engine.trainers([run])[1], SIGKILL)
        assert run.wait(SECONDS) == 0, engine.said.read_text()
        weights[name] = load_file(tmp_path / f"{name}.w")
        resumed = f"resuming from {folder}" in engine.said.read_text()
        assert resumed == (name == "killed")
    assert weights["whole"].keys() == weights["killed"].keys()
    for tensor, values in weights["whole"].items():
        assert values.tobytes() == weights["killed"][tensor].tobytes(), tensor
