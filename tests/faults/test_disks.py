"""A disk that is full before or within a write: at every write of a run in turn."""

import shutil

import pytest
from disks import Disk
from figures import Figures
from hurt_runs import NAME, Hurt
from writes import Writes, before, written

from common.models.weights_file import load_arrays

pytestmark = pytest.mark.faults


@pytest.fixture
def on_disk(hurt: Hurt, disk: Disk) -> Hurt:
    """Runs that lie on the small disk."""
    hurt.move(disk.folder)
    return hurt


def writes_of(hurt: Hurt) -> Writes:
    """What a run writes that is never stopped; it is left in `whole`."""
    with written() as found:
        assert hurt.kept("whole", f"--save-weights={hurt.folder / 'w'}") == 0, hurt.said
    (hurt.folder / "w").unlink()
    return found


def test_a_run_writes_what_is_known_here(hurt: Hurt) -> None:
    names = [name for name, _ in writes_of(hurt)]
    ends = ("new.safetensors", "json")
    steps = [f"{NAME}-step{step}.{end}" for step in (2, 4, 6) for end in ends]
    assert names == [f"{NAME}.json", *steps, "w", *(f"{NAME}.{end}" for end in ends)]


@pytest.mark.parametrize("kind", ["disk full at a write", "disk full within a write"])
def test_a_run_ends_in_order_and_resumes_when_there_is_room(
    on_disk: Hurt, disk: Disk, kind: str, figures: Figures
) -> None:
    hurt, writes, within = on_disk, writes_of(on_disk), "within" in kind
    earlier, weights = hurt.earlier("earlier"), hurt.folder / "w"
    for number, (name, size) in enumerate(writes):
        if within and size < 2 * disk.page():
            continue  # a file of a page is written whole or not at all
        shutil.copytree(hurt.folder / "earlier", hurt.folder / "hurt")
        with before(number, lambda leave=size // 2 * within: disk.fill(leave)):  # type: ignore[misc]
            status = hurt.kept("hurt", f"--save-weights={weights}")
        assert status == 1, (number, name)
        disk.empty()
        hurt.require_one_line("cannot write .*No space left on device")
        hurt.require_kept("hurt", earlier)
        hurt.require_tidy("hurt")
        if weights.exists():
            load_arrays(weights)
        assert hurt.kept("hurt", f"--save-weights={weights}") == 0, hurt.said
        hurt.runner.require_same("whole", "hurt")
        hurt.require_tidy("hurt")
        weights.unlink()
        shutil.rmtree(hurt.folder / "hurt")
        figures(kind)
