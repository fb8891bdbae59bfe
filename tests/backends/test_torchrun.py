"""What runs make of torchrun: one process speaks, and one too many is refused at once."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_chapter import FLAGS, CommandLine
from numpy_concise import NumpyConcise

from common.backends.devices import Process
from common.backends.frameworks import FRAMEWORKS, WRAPPERS
from common.backends.torchrun import place
from common.data.dataset import Dataset
from common.data.synthetic import synthetic
from common.training.cli import main

ROOT = Path(__file__).parents[2]
SEVERAL = "error: torchrun started 2 processes, but one trains on all devices here: .*\n"
OTHERS = [
    (framework, chapter, wrapper)
    for framework in FRAMEWORKS
    for chapter, wrappers in (("scratch", [""]), ("concise", WRAPPERS[framework]))
    for wrapper in wrappers
    if wrapper != "ddp"
]
"""Everything that takes one process, however many devices it has."""

Torchrun = Callable[[str, str], None]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch, tmp_path)


@pytest.fixture
def torchrun(monkeypatch: pytest.MonkeyPatch) -> Torchrun:
    """Pretends that torchrun has started this process, as the one and of so many."""

    def pretend(rank: str, processes: str) -> None:
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("WORLD_SIZE", processes)
        monkeypatch.setenv("LOCAL_RANK", rank)
        monkeypatch.setenv("LOCAL_WORLD_SIZE", processes)

    return pretend


@pytest.mark.parametrize("rank", ["0", "1"])
def test_of_the_processes_that_torchrun_starts_one_speaks(
    start: CommandLine,
    torchrun: Torchrun,
    rank: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def load(name: str, folder: Path, notify: Callable[[str], None], progress: bool) -> Dataset:
        notify("found at last")
        return Dataset(name, *synthetic(30, 10))

    monkeypatch.setattr("common.training.run.load", load)
    monkeypatch.setitem(sys.modules, "frameworks.pytorch.concise", NumpyConcise())
    torchrun(rank, "2")
    assert main("pytorch", "concise", [*FLAGS, "--width=1"]) == 0
    assert ("found at last" in capsys.readouterr().err) == (rank == "0")


def test_one_process_that_torchrun_has_started_may_run(
    start: CommandLine, torchrun: Torchrun
) -> None:
    torchrun("0", "1")
    assert start("--quiet") == 0


@pytest.mark.parametrize(("name", "chapter", "wrapper"), OTHERS)
def test_several_processes_are_refused_before_anything_is_loaded(
    name: str,
    chapter: str,
    wrapper: str,
    tmp_path: Path,
    torchrun: Torchrun,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = f"frameworks.{name}.{chapter}"
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("common.backends.torchrun.PATIENCE", 0)
    flags = [f"--out={tmp_path}", *([f"--wrapper={wrapper}"] if wrapper else [])]
    torchrun("0", "2")
    assert main(name, chapter, flags) == 2
    assert re.fullmatch(f"python -m {module}: {SEVERAL}", capsys.readouterr().err)
    torchrun("1", "2")
    with pytest.raises(SystemExit) as end:
        main(name, chapter, flags)
    assert (end.value.code, *capsys.readouterr()) == (2, "", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("rank", "processes"), [("", ""), ("", "2"), ("0", ""), ("one", "2"), ("-1", "2"), ("2", "2")]
)
def test_an_environment_that_is_torchruns_in_part_is_refused(
    start: CommandLine,
    torchrun: Torchrun,
    rank: str,
    processes: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    torchrun(rank, processes)
    for name, value in (("RANK", rank), ("WORLD_SIZE", processes)):
        if not value:
            monkeypatch.delenv(name)
    assert start("--quiet") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"TORCHELASTIC_RUN_ID is set, but RANK {rank!r} of WORLD_SIZE {processes!r} is no" in err


@pytest.mark.parametrize("processes", ["2", "4"])
def test_devices_that_processes_cannot_share_are_refused_by_the_first(
    start: CommandLine,
    torchrun: Torchrun,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    processes: str,
) -> None:
    def launch(chapter: NumpyConcise, worker: Callable[[Process], None], *_: object) -> None:
        process = place()
        assert process
        worker(process)

    monkeypatch.setattr("common.backends.torchrun.PATIENCE", 0)
    monkeypatch.setitem(sys.modules, "frameworks.pytorch.concise", NumpyConcise())
    monkeypatch.setattr(NumpyConcise, "launch", launch)
    torchrun("0", processes)
    assert main("pytorch", "concise", [*FLAGS, "--width=1", "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"3 devices cannot be shared by {processes} processes" in err
    torchrun("1", processes)
    with pytest.raises(SystemExit) as end:
        main("pytorch", "concise", [*FLAGS, "--width=1", "--quiet"])
    assert (end.value.code, *capsys.readouterr()) == (2, "", "")


def test_a_rank_that_fails_leaves_the_record_to_the_first(
    start: CommandLine, torchrun: Torchrun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(chapter: NumpyConcise, worker: Callable[[Process], None], *_: object) -> None:
        process = place()
        assert process
        worker(process)

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setitem(sys.modules, "frameworks.pytorch.concise", NumpyConcise())
    monkeypatch.setattr(NumpyConcise, "launch", launch)
    monkeypatch.setattr(NumpyConcise, "gradients", fail)
    record = Path("out", "pytorch-concise-3dev.json")
    for rank, begun in (("1", False), ("0", True)):
        torchrun(rank, "3")
        assert main("pytorch", "concise", [*FLAGS, "--width=1", "--quiet"]) == 1
        assert record.exists() == begun


@pytest.mark.only("pytorch")
@pytest.mark.parametrize("chapter", [["scratch"], ["concise", "--wrapper=dp"]])
def test_torchrun_with_two_processes_is_answered_in_one_line(
    chapter: list[str], tmp_path: Path
) -> None:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    what = ["-m", f"frameworks.pytorch.{chapter[0]}", *chapter[1:], f"--out={tmp_path}"]
    done = subprocess.run(
        [sys.executable, *torchrun, *what],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert len(re.findall(SEVERAL, done.stderr)) == 1, done.stderr
    assert not list(tmp_path.iterdir())
