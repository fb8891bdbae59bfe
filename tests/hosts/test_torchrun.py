"""Two processes that torchrun has started compute what one process does on two devices."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from safetensors.numpy import load_file
from started import SECONDS, flags

ROOT: Final = Path(__file__).parents[2]
TORCHRUN: Final = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


@pytest.mark.only("pytorch")
def test_torchrun_with_two_processes_computes_what_one_does_on_two_devices(tmp_path: Path) -> None:
    # Processes share the threads of their host: each device has one, here and there.
    for name, launcher, threads in (("alone", [], 1), ("together", TORCHRUN, 2)):
        own = [each for each in flags(tmp_path / name, 3) if "width" not in each]
        command = [sys.executable, *launcher, "-m", "frameworks.pytorch.scratch", *own]
        how: Any = {"capture_output": True, "text": True, "timeout": SECONDS}
        command += [f"--threads={threads}"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False, **how)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("test acc: ") == 1
    tensors = "pytorch-scratch-2dev.safetensors"
    ours, theirs = (load_file(tmp_path / name / tensors) for name in ("alone", "together"))
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()] == []
