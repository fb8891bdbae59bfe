"""Two processes of torchrun, and two devices at once, have the bits of one after the other."""

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
@pytest.mark.parametrize("launcher", [(), TORCHRUN])
def test_with_two_threads_two_devices_have_the_same_bits_as_with_one(
    tmp_path: Path, launcher: tuple[str, ...]
) -> None:
    # Each device has one thread. Processes share those of their host.
    for name, chosen, threads in (("alone", (), 1), ("together", launcher, 2)):
        flags = f"--threads={threads}", f"--out={tmp_path / name}"
        done = python(*chosen, *SCRATCH, *flags, OMP_NUM_THREADS="1")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("test acc: ") == 1
    tensors = "pytorch-scratch-2dev.safetensors"
    ours, theirs = (load_file(tmp_path / name / tensors) for name in ("alone", "together"))
    assert ours.keys() == theirs.keys()
    different = [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()]
    assert different == []
