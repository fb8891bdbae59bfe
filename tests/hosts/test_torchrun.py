"""Two processes of torchrun compute what one process does on two devices."""

from pathlib import Path
from typing import Final

import pytest
from safetensors.numpy import load_file
from started import SMALL, python

SCRATCH: Final = (
    "-m",
    "frameworks.pytorch.scratch",
    *SMALL,
    "--dtype=float64",
    "--steps=3",
)
TORCHRUN: Final = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


@pytest.mark.only("pytorch")
def test_torchrun_with_two_processes_computes_what_one_does_on_two_devices(tmp_path: Path) -> None:
    # Processes share the threads of their host: each device has one.
    for name, launcher, threads in (("alone", (), 1), ("together", TORCHRUN, 2)):
        flags = f"--threads={threads}", f"--out={tmp_path / name}"
        done = python(*launcher, *SCRATCH, *flags, OMP_NUM_THREADS="1")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("test acc: ") == 1
    tensors = "pytorch-scratch-2dev.safetensors"
    ours, theirs = (load_file(tmp_path / name / tensors) for name in ("alone", "together"))
    assert ours.keys() == theirs.keys()
    different = [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()]
    assert different == []
