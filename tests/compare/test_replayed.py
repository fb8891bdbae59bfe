"""Each step of a framework's run is what NumPy makes of the run's own weights, in any setting."""

import subprocess
import sys
from pathlib import Path

import pytest

from common.compare.checks import check_shapes
from common.compare.recorded_steps import recompute
from common.pairs.runs import read_run
from common.records.trace import traced_steps

ROOT = Path(__file__).parents[2]
SHORT = "--dataset=synthetic --test-examples=20 --threads=1 --quiet"
RUNS = [
    # Of 8 examples the first shards have three and the last one less; the last minibatch has 7.
    "concise --width=2 --batch-size=8 --train-examples=15 --steps=6 --batch-norm=per-device "
    "--layers",
    "scratch --batch-size=11 --train-examples=30 --epochs=9 --lr=0.5 --lr-decay=linear",
]


@pytest.mark.parametrize("flags", RUNS, ids=["concise", "scratch"])
def test_every_step_is_numpys(framework: str, tmp_path: Path, flags: str) -> None:
    chapter, *asked = flags.split()
    given = [*SHORT.split(), *asked, "--dtype=float64", "--seed=4294967295"]
    command = ["-m", f"frameworks.{framework}.{chapter}", "--devices=3", f"--out={tmp_path}"]
    done = subprocess.run(
        [sys.executable, *command, *given], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
    run = read_run(tmp_path / f"{framework}-{chapter}-3dev.json")
    assert check_shapes(run) == ("", "")  # layers included
    again = recompute(run)
    assert again is not None
    assert max(each.far for found in again.steps.values() for each in found) <= 1e-11
    assert len(again.steps["loss"]) == len(traced_steps(run.record.config)) >= 5
