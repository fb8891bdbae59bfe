"""On a machine with a GPU that CUDA reaches: it is used, the record says so, the numbers agree."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from common.base.arrays import Weights
from common.chapters.chapters import CHAPTERS
from common.compare.distances import compare
from common.records.record import Record
from common.records.store import read_record, read_tensors

ROOT = Path(__file__).parents[2]
FLAGS = "--dataset=synthetic --devices=1 --dtype=float64 --steps=3 --batch-size=20 --quiet"
EXAMPLES = ["--train-examples=60", "--test-examples=50"]


def trained(framework: str, chapter: str, kind: str, folder: Path) -> tuple[Record, Weights]:
    """The record and the tensors of a short run; skips the test if there is no such device."""
    command = [sys.executable, "-m", f"frameworks.{framework}.{chapter}", *FLAGS.split()]
    command += [*EXAMPLES, f"--device-kind={kind}", f"--out={folder}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if "sees 0 GPUs here" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    path = folder / f"{framework}-{chapter}-1dev.json"
    record = read_record(path)
    return record, {**read_tensors(path, record), "losses": np.array(record.losses)}


@pytest.mark.gpu
@pytest.mark.only("pytorch", "jax")
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_gpu_is_used_and_named_and_computes_what_a_cpu_does(
    framework: str, chapter: str, tmp_path: Path
) -> None:
    record, found = trained(framework, chapter, "gpu", tmp_path / "gpu")
    assert [name for name in record.devices if "cuda" in name.lower()] == record.devices
    _, expected = trained(framework, chapter, "cpu", tmp_path / "cpu")
    for part in ("logits/before", "gradients/", "losses"):
        for each in compare(found, expected, part):
            assert each.far < 1e-10, each.where


def test_gpus_that_are_not_there_are_an_error(
    framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    flags = ["--device-kind=gpu", "--dataset=synthetic", "--quiet", f"--out={tmp_path}"]
    command = [sys.executable, "-m", f"frameworks.{framework}.scratch", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    line = r"python -m .*: error: .* sees 0 GPUs .*--device-kind cpu\n"
    assert re.fullmatch(line, done.stderr), done.stderr
    assert not list(tmp_path.iterdir())
