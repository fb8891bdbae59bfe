"""What backends say of GPUs and set for them, on a machine without one."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from started import python

from common.backends import loading
from common.backends.devices import DeviceRequest


def test_gpus_that_are_not_there_are_an_error(framework: str, tmp_path: Path) -> None:
    flags = ["--device-kind=gpu", "--dataset=synthetic", "--quiet", f"--out={tmp_path}"]
    done = python("-m", f"frameworks.{framework}.scratch", *flags, CUDA_VISIBLE_DEVICES="-1")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    line = r"python -m .*: error: .* sees no GPU here: .*--device-kind cpu does without\n"
    assert re.fullmatch(line, done.stderr), done.stderr
    assert not list(tmp_path.iterdir())


def test_libraries_are_told_whether_they_may_round(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"NVIDIA_TF32_OVERRIDE": "1"}
    monkeypatch.setattr(os, "environ", environment)
    loading.set_tf32(False)
    assert environment == {"NVIDIA_TF32_OVERRIDE": "0"}
    loading.set_tf32(True)
    assert environment == {}


@pytest.mark.only("jax")
def test_jax_knows_the_flags_that_it_is_given_for_gpus(
    framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices: Any = import_module("frameworks.jax.devices")
    monkeypatch.setattr(devices, "for_gpus", lambda: True)
    monkeypatch.setattr(os, "environ", {**os.environ, "XLA_FLAGS": "--xla_gpu_autotune_level=4"})
    devices.prepare_gpus(DeviceRequest(1, "gpu", 1, deterministic=True))
    first, own, last = os.environ["XLA_FLAGS"].split()
    assert (first, last) == (
        *("--xla_gpu_enable_triton_gemm=false", "--xla_gpu_deterministic_ops=true"),
    )
    assert own == "--xla_gpu_autotune_level=4"  # after ours, so that it may take that back
    # XLA ends a process that gives it a flag that it does not know.
    command = [sys.executable, "-c", "import jax; jax.devices('cpu')"]
    subprocess.run(command, env=dict(os.environ), check=True)
