"""Real commands in each framework: no room, no right to write, no memory, another run at work."""

import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from disks import Disk
from figures import Figures
from hurt_runs import require_tidy
from killed_runs import Case, Runner
from stopped_runs import Ended, ended, held_at_a_checkpoint

from common.records.record import Record

pytestmark = [pytest.mark.faults, pytest.mark.short("pytorch")]

LITTLE = 200 << 20
"""Bytes of address space: enough for Python and NumPy, too few for any framework."""

SCRATCH = Case("scratch", 2, ())
CONCISE = Case("concise", 2, ("--width=4",))
NeverStopped = Callable[[Case], Runner]


@pytest.fixture(scope="module")
def never_stopped(framework: str, tmp_path_factory: pytest.TempPathFactory) -> NeverStopped:
    """Gives a case's runner, whose folder has the run `whole`."""
    made: dict[Case, Runner] = {}

    def find(case: Case) -> Runner:
        if case not in made:
            made[case] = Runner(framework, case, tmp_path_factory.mktemp("commands"))
            made[case].finish("whole")
        return made[case]

    return find


def require_one_line(end: Ended, words: str) -> None:
    """A command has said in one line what went wrong."""
    assert re.fullmatch(rf"python -m \S+: error: .*({words}).*\n", end.said), end


def require_resumed(runner: Runner, folder: Path) -> None:
    """A run goes on to the same bits as the one that was never stopped, and leaves no more."""
    if folder.parent != runner.folder:
        shutil.copytree(folder, runner.folder / folder.name)
    runner.finish(folder.name, "--resume")
    runner.require_same("whole", folder.name)
    require_tidy(runner.folder / folder.name, runner.name)
    shutil.rmtree(runner.folder / folder.name)


@pytest.mark.parametrize(
    ("case", "kind"), [(CONCISE, "disk full at a write"), (SCRATCH, "disk read-only")], ids=str
)
def test_a_disk_that_takes_no_more(
    never_stopped: NeverStopped, disk: Disk, figures: Figures, case: Case, kind: str
) -> None:
    runner = never_stopped(case)
    with held_at_a_checkpoint(runner, str(disk.folder / "hurt")) as go_on:
        full = "full" in kind
        disk.fill(leave=100_000) if full else disk.protect()
        end = go_on()
    disk.empty() if full else disk.unprotect()
    assert end.status == 1
    says = "No space left on device" if full else "Read-only file system"
    require_one_line(end, f"cannot write .*{says}")
    if full:
        require_tidy(disk.folder / "hurt", runner.name)
    require_resumed(runner, disk.folder / "hurt")
    figures(kind, chapter=case.chapter)


def test_another_run_in_the_same_folders(never_stopped: NeverStopped, figures: Figures) -> None:
    runner = never_stopped(SCRATCH)
    with held_at_a_checkpoint(runner, "hurt") as go_on:
        before = runner.record("hurt")
        other = runner.start("hurt", "--resume")
        end = ended(other, [])
        assert end.status == 2
        require_one_line(end, "another run is writing .*: wait for it, or choose another folder")
        assert runner.record("hurt") == before
        assert go_on() == Ended(0, "")
    runner.require_same("whole", "hurt")
    require_tidy(runner.folder / "hurt", runner.name)
    shutil.rmtree(runner.folder / "hurt")
    figures("two runs in one folder", chapter="scratch")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.function is test_memory_that_ends_on_the_way:
        short = metafunc.config.getoption("--short")
        metafunc.parametrize("case", [SCRATCH] if short else [SCRATCH, CONCISE], ids=str)


def test_memory_that_ends_on_the_way(
    never_stopped: NeverStopped, figures: Figures, case: Case
) -> None:
    runner = never_stopped(case)
    with held_at_a_checkpoint(runner, "hurt") as go_on:
        for process in go_on.everyone:
            resource.prlimit(process, resource.RLIMIT_AS, (taken(process), resource.RLIM_INFINITY))
        end = go_on()
    require_in_order(end, runner.record("hurt"))
    require_resumed(runner, runner.folder / "hurt")
    figures("no memory on the way", chapter=case.chapter)


def test_memory_that_does_not_suffice_from_the_start(
    never_stopped: NeverStopped, figures: Figures
) -> None:
    runner = never_stopped(SCRATCH)
    run = runner.start("little")
    resource.prlimit(run.pid, resource.RLIMIT_AS, (LITTLE, LITTLE))
    end = ended(run, [run.pid])
    assert end.status != 0
    assert "Traceback" not in end.said
    assert not (runner.folder / "little").exists()
    figures("no memory from the start", chapter="scratch")


def taken(process: int) -> int:
    """The bytes of address space that a process has."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def require_in_order(end: Ended, record: Record) -> None:
    """A run whose memory has ended says that it failed, or never says that it is whole."""
    assert end.status != 0  # or nothing went wrong
    if end.status > 0:
        assert (end.status, record.status) == (1, "failed")
        require_one_line(end, ".")
    else:  # native code has ended the process, there or when it was about to leave
        assert record.status in ("running", "failed")
