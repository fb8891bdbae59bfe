"""A rival of the benchmark that would be timed on a GPU, and sees none, is not timed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.only("pytorch")


def test_a_rival_that_sees_no_gpu_is_not_timed(framework: str) -> None:
    code = f"from bench.rivals_on_gpus import require_gpu; require_gpu({framework!r})"
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.endswith(f"RunError: {framework} sees no GPU here\n")
