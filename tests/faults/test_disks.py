"""A disk that is full, has no room for names, or is read-only: at every write of a run in turn."""

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from disks import Disk
from figures import Figures
from hurt_runs import NAME, Hurt
from writes import Writes, before, written

from common.models.weights_file import load_arrays

pytestmark = pytest.mark.faults

FULL = "No space left on device"


@dataclass(frozen=True)
class Trouble:
    """What is done to a disk before a write of so many bytes, and what is said of it then."""

    kind: str
    make: Callable[[Disk, int], None]
    end: Callable[[Disk], None]
    says: str


TROUBLES = (
    Trouble("disk full at a write", lambda disk, size: disk.fill(), Disk.empty, FULL),
    Trouble("disk full within a write", lambda disk, size: disk.fill(size // 2), Disk.empty, FULL),
    Trouble("disk full of names", lambda disk, size: disk.crowd(), Disk.empty, FULL),
    Trouble(
        "disk read-only",
        lambda disk, size: disk.protect(),
        Disk.unprotect,
        "Read-only file system",
    ),
)


@pytest.fixture
def on_disk(hurt: Hurt, disk: Disk) -> Hurt:
    """Runs that lie on the small disk, `whole` among them, which is never stopped."""
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
    steps = [f"{NAME}-step{step}.{end}" for step in (2, 4, 6) for end in ("safetensors", "json")]
    assert names == [f"{NAME}.json", *steps, "w", f"{NAME}.safetensors", f"{NAME}.json"]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.kind)
def test_a_run_ends_in_order_and_goes_on_when_there_is_room(
    on_disk: Hurt, disk: Disk, trouble: Trouble, figures: Figures
) -> None:
    hurt, writes, within = on_disk, writes_of(on_disk), "within" in trouble.kind
    earlier = hurt.earlier("earlier")
    for number, (name, size) in enumerate(writes):
        if within and size < 2 * disk.page():
            continue  # a file of a page is written whole or not at all
        shutil.copytree(hurt.folder / "earlier", hurt.folder / "hurt")
        weights = hurt.folder / "w"
        with before(number, lambda size=size: trouble.make(disk, size)):  # type: ignore[misc]
            status = hurt.kept("hurt", f"--save-weights={weights}")
        assert status == 1, (number, name)
        trouble.end(disk)
        hurt.require_one_line(f"cannot write .*{trouble.says}")
        hurt.require_kept("hurt", earlier)
        if trouble.kind != "disk read-only":  # where nothing can be tidied
            hurt.require_tidy("hurt")
        if weights.exists():
            load_arrays(weights)
        assert hurt.kept("hurt", f"--save-weights={weights}") == 0, hurt.said
        hurt.runner.require_same("whole", "hurt")
        hurt.require_tidy("hurt")
        weights.unlink()
        shutil.rmtree(hurt.folder / "hurt")
        figures(trouble.kind)


def test_a_disk_has_room_for_some_of_it(
    on_disk: Hurt, disk: Disk, kills: int, figures: Figures
) -> None:
    hurt, room, before_it = on_disk, random.Random("room"), disk.free()
    writes_of(hurt)
    taken, earlier = before_it - disk.free(), hurt.earlier("earlier")
    for _ in range(kills):
        shutil.copytree(hurt.folder / "earlier", hurt.folder / "hurt")
        disk.fill(leave=room.randrange(taken))
        status = hurt.kept("hurt")
        disk.empty()
        hurt.require_tidy("hurt")
        if status:
            hurt.require_one_line(f"cannot write .*{FULL}")
            hurt.require_kept("hurt", earlier)
        assert hurt.kept("hurt") == 0, hurt.said
        hurt.runner.require_same("whole", "hurt")
        shutil.rmtree(hurt.folder / "hurt")
    figures("disk with room for some of it", kills)


@pytest.mark.parametrize("trouble", TROUBLES[::3], ids=lambda trouble: trouble.kind)
def test_a_run_that_finds_it_so_changes_nothing(
    on_disk: Hurt, disk: Disk, trouble: Trouble, figures: Figures
) -> None:
    earlier = on_disk.earlier("hurt")
    trouble.make(disk, 0)
    status = on_disk.kept("hurt")
    trouble.end(disk)
    on_disk.require_one_line(f"cannot write .*{trouble.says}")
    assert status == (2 if trouble.kind == "disk read-only" else 1)
    on_disk.require_kept("hurt", earlier)
    on_disk.require_tidy("hurt")
    figures(trouble.kind)
