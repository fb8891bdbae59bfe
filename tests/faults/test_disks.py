"""A disk that is full at a write: at every write of a run in turn."""

import shutil

import pytest
from disks import Disk
from hurt_runs import NAME, Hurt
from writes import before, written

from common.models.weights_file import load_arrays

pytestmark = pytest.mark.faults


def test_a_run_ends_in_order_and_resumes_when_there_is_room(hurt: Hurt, disk: Disk) -> None:
    hurt.move(disk.folder)
    weights = hurt.folder / "w"
    with written() as writes:
        assert hurt.kept("whole", f"--save-weights={weights}") == 0, hurt.said
    ends = ("safetensors", "json")
    steps = [f"{NAME}-step{step}.{end}" for step in (2, 4, 6) for end in ends]
    assert writes == [f"{NAME}.json", *steps, "w", *(f"{NAME}.{end}" for end in ends)]
    hurt.earlier("earlier")
    for number, name in enumerate(writes):
        weights.unlink()
        shutil.copytree(hurt.folder / "earlier", hurt.folder / "hurt")
        with before(number, disk.fill):
            status = hurt.kept("hurt", f"--save-weights={weights}")
        assert status == 1, (number, name)
        disk.empty()
        hurt.require_one_line("cannot write .*No space left on device")
        hurt.require_own("hurt")
        hurt.require_tidy("hurt")
        if weights.exists():
            load_arrays(weights)
        assert hurt.kept("hurt", f"--save-weights={weights}") == 0, hurt.said
        hurt.runner.require_same("whole", "hurt")
        hurt.require_tidy("hurt")
        shutil.rmtree(hurt.folder / "hurt")
