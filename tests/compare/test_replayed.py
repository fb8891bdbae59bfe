"""Each step of a framework's run is what NumPy makes of the run's own weights, in any setting."""

import subprocess
import sys
from pathlib import Path

import pytest

from common.compare.checks import allowed
from common.compare.replay import replay
from common.pairs.runs import read_run
from common.records.trace import traced_steps

ROOT = Path(__file__).parents[2]
SHORT = "--dataset=synthetic --test-examples=20 --threads=1 --quiet"
RUNS = [
    # Of 8 examples the first shard has three and the others less; the last minibatch has 5.
    ("concise", "--width=2 --batch-size=8 --train-examples=13 --steps=6 --batch-norm=per-device"),
    ("concise", "--width=3 --batch-size=7 --train-examples=9 --steps=5 --batch-norm=sync --lr=0.1"),
    ("scratch", "--batch-size=11 --train-examples=30 --epochs=9 --lr=0.5 --lr-decay=linear"),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("chapter", "flags"), RUNS, ids=["per-device", "sync", "scratch"])
def test_every_step_is_numpys(
    framework: str, tmp_path: Path, chapter: str, flags: str, dtype: str
) -> None:
    given = [*SHORT.split(), *flags.split(), f"--dtype={dtype}", "--seed=4294967295"]
    command = ["-m", f"frameworks.{framework}.{chapter}", "--devices=3", f"--out={tmp_path}"]
    subprocess.run([sys.executable, *command, *given], cwd=ROOT, check=True)
    run = read_run(tmp_path / f"{framework}-{chapter}-3dev.json")
    again, limits = replay(run), allowed(run)
    assert again is not None
    for kind, found in again.steps.items():
        for each in found:
            assert each.far <= (1e-11 if dtype == "float64" else limits[kind].limit), each
    assert len(again.steps["loss"]) == len(traced_steps(run.record.config)) >= 5
