"""GPUs are used and named, and compute what CPU devices compute.

`nox -s gpu` runs these; `--gpus` says how many GPUs there are.
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from common.backends.frameworks import WRAPPERS
from common.base.arrays import Weights
from common.base.machine import find_cards
from common.chapters.concise import BATCH_NORMS
from common.chapters.scratch import ALLREDUCES
from common.compare.distances import compare
from common.records.record import Record, read_record, read_tensors

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
# Uneven on 3 and 4 devices; the last minibatch is smaller than the number of devices.
FLAGS = "--dataset=synthetic --preset=book --lr=0.1 --epochs=2 --batch-size=10 --train-examples=31 "
FLAGS += "--test-examples=50"
PARTS = ("logits/before", "gradients/", "losses", "weights/", "logits/after")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every allreduce, and each wrapper with each batch norm."""
    framework = metafunc.config.getoption("--framework")
    gpus = metafunc.config.getoption("--gpus") or 1
    if "options" in metafunc.fixturenames:
        cases = [f"scratch --allreduce={name}" for name in ALLREDUCES]
        for wrapper in WRAPPERS.get(framework, ()):
            for mode in BATCH_NORMS if wrapper != "dp" else BATCH_NORMS[:1]:
                cases.append(f"concise --width=4 --wrapper={wrapper} --batch-norm={mode}")
        metafunc.parametrize("options", cases)
    if "devices" in metafunc.fixturenames:
        metafunc.parametrize("devices", range(1, gpus + 1))


def run(framework: str, options: str, folder: Path, *flags: str) -> tuple[Record, Weights]:
    """The record and the tensors of a short run."""
    chapter, *chosen = options.split()
    command = [sys.executable, "-m", f"frameworks.{framework}.{chapter}", *chosen, *FLAGS.split()]
    command += ["--quiet", f"--out={folder}", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # MXNet prints this before it chooses among cuDNN's algorithms.
    errors = [x for x in done.stderr.splitlines() if "Running performance tests" not in x]
    assert (done.returncode, errors) == (0, [])
    (path,) = folder.glob(f"{framework}-{chapter}-?dev.json")
    record = read_record(path)
    return record, {**read_tensors(path, record), "losses": np.array(record.losses)}


def test_gpus_compute_what_cpu_devices_do(
    framework: str, options: str, devices: int, tmp_path: Path
) -> None:
    exact = ["--dtype=float64", f"--devices={devices}"]
    record, tensors = run(framework, options, tmp_path / "gpu", "--device-kind=gpu", *exact)
    assert len(set(record.devices)) == devices
    assert not [name for name in record.devices if "cpu" in name.lower()]
    assert record.machine["driver"]
    on_cpus = options.replace("=dp", "=ddp")  # which needs GPUs
    _, expected = run(framework, on_cpus, tmp_path / "cpu", "--device-kind=cpu", *exact)
    for part in PARTS:
        for off in compare(tensors, expected, part):
            assert off.far < 1e-10, (part, off)


def test_a_run_has_the_same_bits_again_and_resumed(
    framework: str, options: str, devices: int, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    flags = ["--device-kind=gpu", f"--devices={devices}", "--deterministic"]
    _, again = run(framework, options, tmp_path / "again", *flags)
    flags += [f"--checkpoint-dir={kept}", "--checkpoint-every=3"]
    _, whole = run(framework, options, tmp_path / "whole", *flags)
    for path in kept.glob("*-step8.*"):
        path.unlink()
    assert list(kept.glob("*-step6.json"))
    _, resumed = run(framework, options, tmp_path / "resumed", *flags, "--resume")
    for tensors in (again, resumed):
        assert not [name for name in whole if whole[name].tobytes() != tensors[name].tobytes()]


def test_tf32_is_there_for_those_who_ask(framework: str, tmp_path: Path) -> None:
    single = ["--device-kind=gpu", "--devices=1"]
    _, exact = run(framework, "scratch", tmp_path / "exact", *single, "--dtype=float64")
    _, full = run(framework, "scratch", tmp_path / "full", *single)
    record, coarse = run(framework, "scratch", tmp_path / "coarse", *single, "--tf32")
    assert record.config.tf32
    far, farther = (
        max(off.far for off in compare(tensors, exact, "gradients/")) for tensors in (full, coarse)
    )
    assert far < 2e-5
    if (find_cards(None)[0].capability or (0, 0)) >= (8, 0):  # older ones have none
        assert farther > 1e-4


def test_no_memory_is_taken_but_what_is_needed(framework: str, tmp_path: Path) -> None:
    before = most = used()
    command = [sys.executable, "-m", f"frameworks.{framework}.scratch", "--device-kind=gpu"]
    command += ["--devices=1", "--dataset=synthetic", "--epochs=30", f"--out={tmp_path}", "--quiet"]
    with subprocess.Popen(command, cwd=ROOT) as running:
        while running.poll() is None:
            most = max(most, used())
            time.sleep(0.2)
    assert running.returncode == 0
    assert most - before < 2 * 2**30


def used() -> int:
    """The used memory of all GPUs, in bytes."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return sum(int(line) for line in output.split()) * 2**20
