"""Results on another file system, and on several: nothing moves a file from one to another."""

from pathlib import Path

import pytest
from disks import Disk
from figures import Figures
from hurt_runs import NAME, Hurt

from common.models.weights_file import load_arrays
from common.records.store import read_record, read_tensors

pytestmark = pytest.mark.faults


def test_record_checkpoints_and_weights_lie_on_several(
    hurt: Hurt, disk: Disk, figures: Figures
) -> None:
    assert hurt.kept("whole") == 0
    weights, kept, out = disk.folder / "w", hurt.folder / "kept", disk.folder / "out"
    hurt.monkeypatch.setenv("TMPDIR", str(hurt.folder))
    flags = f"--checkpoint-dir={kept}", f"--out={out}", f"--save-weights={weights}"
    for _ in range(2):
        assert hurt.run(*flags, "--checkpoint-every=2", "--resume") == 0, hurt.said
    record = read_record(out / f"{NAME}.json")
    assert record.losses == hurt.record("whole").losses
    read_tensors(out / f"{NAME}.json", record)
    load_arrays(weights)
    figures("results on another file system")


@pytest.mark.parametrize("end", [".json", ".safetensors"])
def test_links_lead_from_one_to_the_other(
    hurt: Hurt, disk: Disk, figures: Figures, end: str
) -> None:
    assert hurt.kept("whole") == 0
    earlier = hurt.earlier("hurt")
    path, far = hurt.path("hurt").with_suffix(end), disk.folder / f"far{end}"
    path.rename(hurt.folder / "moved")
    far.write_bytes((hurt.folder / "moved").read_bytes())
    path.symlink_to(far)
    disk.fill()  # its last file finds no room, and the other one is on another disk
    assert hurt.kept("hurt") == 1
    hurt.require_one_line("cannot write .*No space left on device")
    hurt.require_kept("hurt", earlier)
    disk.empty()
    assert hurt.kept("hurt") == 0, hurt.said
    assert path.readlink() == Path(far)
    hurt.runner.require_same("whole", "hurt")
    hurt.require_tidy("hurt")
    figures("results on another file system")
