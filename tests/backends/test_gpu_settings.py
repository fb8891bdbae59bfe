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
from common.backends.interface import DeviceRequest


def test_gpus_that_are_not_there_are_an_error(framework: str, tmp_path: Path) -> None:
    flags = ["--device-kind=gpu", "--dataset=synthetic", "--quiet", f"--out={tmp_path}"]
    done = python("-m", f"frameworks.{framework}.scratch", *flags, CUDA_VISIBLE_DEVICES="-1")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    line = r"python -m .*: error: .* sees 0 GPUs here, not .*--device-kind cpu.*\n"
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


@pytest.mark.only("pytorch")
@pytest.mark.parametrize("examples", [5, 0])
def test_patches_times_a_matrix_is_the_convolution_that_gpus_compute(
    framework: str, examples: int
) -> None:
    torch: Any = import_module("torch")
    kernels: Any = import_module("frameworks.pytorch.kernels")
    made = torch.Generator().manual_seed(0)
    shapes = (examples, 3, 9, 8), (4, 3, 5, 2), (4,)
    given = [torch.randn(*shape, generator=made, dtype=torch.float64) for shape in shapes]
    for each in given:
        each.requires_grad_()
    found, expected = kernels.patches_times_matrix(*given), kernels.conv2d(*given)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    upstream = torch.randn(found.shape, generator=made, dtype=torch.float64)
    grads = (torch.autograd.grad(Y, given, upstream) for Y in (found, expected))
    torch.testing.assert_close(*grads, rtol=1e-12, atol=1e-12)


@pytest.mark.only("pytorch")
@pytest.mark.parametrize(("examples", "sizes"), [(6, [2, 2, 1, 1]), (3, [1, 1, 1])])
def test_data_parallel_cuts_as_all_do(framework: str, examples: int, sizes: list[int]) -> None:
    torch: Any = import_module("torch")
    wrappers: Any = import_module("frameworks.pytorch.wrappers")
    wrapped = wrappers.DataParallel(torch.nn.Identity())
    X = torch.arange(examples)
    shards, options = wrapped.scatter((X,), None, ["cpu"] * 4)
    assert [len(shard) for (shard,) in shards] == sizes
    assert options == [{}] * len(sizes)
    assert [int(each) for (shard,) in shards for each in shard] == list(range(examples))
