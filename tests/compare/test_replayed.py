"""Each step of a framework's run is what NumPy makes of the run's own weights, in any setting."""

from pathlib import Path

from started import python

from common.compare.recorded_steps import recompute
from common.pairs.runs import read_run
from common.records.trace import traced_steps

FLAGS = (
    *("--dataset=synthetic", "--train-examples=30", "--test-examples=20", "--batch-size=11"),
    *("--devices=3", "--epochs=9", "--lr=0.5", "--lr-decay=linear", "--seed=4294967295"),
    *("--dtype=float64", "--threads=1", "--quiet"),
)
"""The last minibatch has 8 examples: shards of three, three and two."""


def test_every_step_is_numpys(framework: str, tmp_path: Path) -> None:
    done = python("-m", f"frameworks.{framework}.scratch", *FLAGS, f"--out={tmp_path}")
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")
    run = read_run(tmp_path / f"{framework}-scratch-3dev.json")
    assert run.wrong_array == ("", "")
    again = recompute(run)
    assert again is not None
    assert max(each.far for found in again.steps.values() for each in found) <= 1e-11
    assert len(again.steps["loss"]) == len(traced_steps(run.record.config)) >= 5
