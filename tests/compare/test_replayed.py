"""Each step of a framework's run is what NumPy makes of the run's own weights, in any setting."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from common.compare.checks import allowed
from common.compare.replay import replay
from common.models.nets import layer_shapes
from common.pairs.runs import read_run
from common.records.contents import LAYERS_PROBE
from common.records.trace import traced_steps

ROOT = Path(__file__).parents[2]
SHORT = "--dataset=synthetic --test-examples=20 --threads=1 --quiet"
RUNS = [
    # Of 8 examples the first shards have three and the last one less; the last minibatch has 7.
    "concise --width=2 --batch-size=8 --train-examples=15 --steps=6 --batch-norm=per-device",
    "concise --width=3 --batch-size=7 --train-examples=9 --steps=5 --batch-norm=sync --lr=0.1",
    "scratch --batch-size=11 --train-examples=30 --epochs=9 --lr=0.5 --lr-decay=linear",
]
CASES = list(zip(RUNS, ("float64", "float32", "float64"), (True, False, False), strict=True))


@pytest.mark.parametrize(("flags", "dtype", "layers"), CASES, ids=["per-device", "sync", "scratch"])
def test_every_step_is_numpys(
    framework: str, tmp_path: Path, flags: str, dtype: str, layers: bool
) -> None:
    chapter, *asked = flags.split()
    given = [*SHORT.split(), *asked, f"--dtype={dtype}", "--seed=4294967295"]
    given += ["--layers"] if layers else []
    command = ["-m", f"frameworks.{framework}.{chapter}", "--devices=3", f"--out={tmp_path}"]
    done = subprocess.run(
        [sys.executable, *command, *given], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
    run = read_run(tmp_path / f"{framework}-{chapter}-3dev.json")
    for name, shape in (layer_shapes(2) if layers else {}).items():
        for when in ("before", "after"):
            kept = run.arrays[f"layers/{when}/{name}"]
            assert (kept.dtype, kept.shape) == (np.dtype(dtype), (LAYERS_PROBE, *shape))
    again, limits = replay(run), allowed(run)
    assert again is not None
    for kind, found in again.steps.items():
        for each in found:
            assert each.far <= (1e-11 if dtype == "float64" else limits[kind].limit), each
    assert len(again.steps["loss"]) == len(traced_steps(run.record.config)) >= 5
