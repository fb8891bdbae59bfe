"""Real commands in each framework: a disk without room, and another run at work."""

import re
import shutil

import pytest
from disks import Disk
from figures import Figures
from hurt_runs import require_tidy
from killed_runs import Case, Runner
from stopped_runs import Ended, ended, held_at_a_checkpoint

pytestmark = [pytest.mark.faults, pytest.mark.short("pytorch")]


@pytest.fixture(scope="module")
def runner(framework: str, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Runs of ResNet-18; its folder has the run `whole`."""
    case = Case("concise", 2, ("--width=4",))
    made = Runner(framework, case, tmp_path_factory.mktemp("commands"))
    made.finish("whole")
    return made


def require_one_line(end: Ended, words: str) -> None:
    """A command has said in one line what went wrong."""
    assert re.fullmatch(rf"python -m \S+: error: .*({words}).*\n", end.said), end


def test_a_disk_that_takes_no_more(runner: Runner, disk: Disk, figures: Figures) -> None:
    with held_at_a_checkpoint(runner, str(disk.folder / "hurt")) as resumed:
        disk.fill(leave=100_000)
        end = resumed()
    disk.empty()
    assert end.status == 1
    require_one_line(end, "cannot write .*No space left on device")
    require_tidy(disk.folder / "hurt", runner.name)
    shutil.copytree(disk.folder / "hurt", runner.folder / "hurt")
    runner.finish("hurt", "--resume")
    runner.require_same("whole", "hurt")
    require_tidy(runner.folder / "hurt", runner.name)
    figures("disk full at a write", chapter="concise")


def test_another_run_in_the_same_folders(runner: Runner, figures: Figures) -> None:
    with held_at_a_checkpoint(runner, "two") as resumed:
        before = runner.record("two")
        end = ended(runner.start("two", "--resume"), [])
        assert end.status == 2
        require_one_line(end, "another run is writing .*: wait for it, or choose another folder")
        assert runner.record("two") == before
        assert resumed() == Ended(0, "")
    runner.require_same("whole", "two")
    require_tidy(runner.folder / "two", runner.name)
    figures("two runs in one folder", chapter="concise")
