"""The runs of the parity grid: which they are, and that they are what the commands do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from common import grid
from common.arguments import parser
from common.suites import SUITES

FLAGS = "--dataset=synthetic --train-examples=60 --test-examples=50 --batch-size=20 --steps=3"


def test_every_suite_runs_on_its_devices() -> None:
    first, more = grid.commands(Path("r")), grid.commands(Path("r"), more_devices=True)
    assert len(first) == sum(len(suite.devices) for suite in SUITES)
    assert len(more) == sum(len(suite.more_devices) for suite in SUITES)
    asked = [(chapter, flag) for chapter, flags in first + more for flag in flags]
    for k in (1, 2, 4):
        assert {chapter for chapter, flag in asked if flag == f"--devices={k}"} == {
            "scratch",
            "concise",
        }
    assert not {flag for _, flags in first for flag in flags} & {"--devices=3", "--devices=4"}
    assert all("--preset=quick" in flags for _, flags in first[:4])
    assert sum("--layers" in flags for _, flags in first) == 2
    for chapter, flags in first + more:
        parser("jax", chapter).parse_args(flags)


def test_what_fails_is_said_and_ends_the_grid(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "cores", lambda: 1)
    wrong = ["--devices=0", f"--out={tmp_path}"]
    monkeypatch.setattr(grid, "commands", lambda *_, **__: [("scratch", wrong)] * 20)
    assert grid.main(["pytorch"]) == 2
    said = capfd.readouterr().out
    assert said.count("'0' is not a whole number") in (1, 2)  # the next one may have begun
    assert f"python -m frameworks.pytorch.scratch --devices=0 --out={tmp_path}" in said
    assert not list(tmp_path.iterdir())


def test_a_run_is_what_its_command_does(
    framework: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY"):  # restored, whatever the grid sets
        monkeypatch.setenv(name, os.environ.get(name, ""))
    records = []
    for name in ("forked", "command"):
        flags = [*FLAGS.split(), "--devices=2", "--threads=1", f"--out={tmp_path / name}"]
        if name == "forked":
            status = grid.run_one(grid.server(framework), framework, ("scratch", flags))
            assert status == 0
        else:
            command = [sys.executable, "-m", f"frameworks.{framework}.scratch", *flags]
            subprocess.run(command, check=True)
        record = json.loads((tmp_path / name / f"{framework}-scratch-2dev.json").read_text())
        assert record["command"] == ["python", "-m", f"frameworks.{framework}.scratch", *flags]
        records.append(record)
    assert records[0]["status"] == "complete"
    assert records[0]["losses"] == records[1]["losses"]
    assert "test acc: " in capfd.readouterr().out
