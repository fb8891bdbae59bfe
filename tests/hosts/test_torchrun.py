"""What runs make of torchrun: one process is a run, several train together and are asked alike."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_chapter import CommandLine, written
from killed_runs import ROOT
from safetensors.numpy import load_file
from started import CONCISE, SECONDS, flags

from common.training.run import LAUNCHER_TIMEOUT

Torchrun = Callable[[str, str], None]

SCRATCH = ["-m", "frameworks.pytorch.scratch"]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    return CommandLine(monkeypatch, tmp_path)


@pytest.fixture
def torchrun(monkeypatch: pytest.MonkeyPatch) -> Torchrun:
    """Pretends that torchrun has started this process, as the one and of so many."""

    def pretend(rank: str, processes: str) -> None:
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", "29500")
        monkeypatch.setenv("GROUP_WORLD_SIZE", "1")
        for name in ("RANK", "LOCAL_RANK"):
            monkeypatch.setenv(name, rank)
        for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
            monkeypatch.setenv(name, processes)

    return pretend


def test_one_process_that_torchrun_has_started_is_a_run(
    start: CommandLine, torchrun: Torchrun
) -> None:
    torchrun("0", "1")
    assert start("--quiet") == 0
    assert written()["cluster"] is None
    assert written()["devices"] == ["cpu:0", "cpu:1", "cpu:2"]


def test_no_launcher_counts_if_that_is_asked_for(start: CommandLine, torchrun: Torchrun) -> None:
    torchrun("1", "2")
    assert start("--launcher=none", "--quiet") == 0


@pytest.mark.parametrize(
    ("processes", "wrong", "why"),
    [
        ("2", (), "3 devices cannot be shared by 2 processes"),
        ("4", (), "3 devices cannot be shared by 4 processes"),
        ("3", ("--resume",), "--resume needs --checkpoint-dir"),
        ("3", ("--batch-size=2",), "3 devices cannot share a minibatch of 2"),
        ("3", ("--init-weights=none.safetensors",), "none.safetensors"),
        ("3", ("--train-examples=31",), "31"),
    ],
)
def test_what_all_refuse_alike_the_first_one_says_at_once(
    start: CommandLine,
    torchrun: Torchrun,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    processes: str,
    wrong: tuple[str, ...],
    why: str,
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("common.training.run.time.sleep", waits.append)
    for rank, waited in (("0", []), ("1", [LAUNCHER_TIMEOUT])):
        torchrun(rank, processes)
        assert start(*wrong) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), waits) == ("", 1, waited)
        assert why in err
    assert not list(Path().iterdir())


def test_an_environment_that_is_torchruns_in_part_is_refused(
    start: CommandLine,
    torchrun: Torchrun,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    torchrun("0", "2")
    monkeypatch.delenv("RANK")
    assert start("--quiet") == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "TORCHELASTIC_RUN_ID is set, but RANK '' of WORLD_SIZE '2'" in err


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.only("pytorch")
def test_torchrun_with_two_processes_computes_what_one_does_on_two_devices(tmp_path: Path) -> None:
    # Processes share the threads of their host: each device has one, here and there.
    for name, launcher, threads in (("alone", [], 1), ("together", TORCHRUN, 2)):
        own = [each for each in flags(tmp_path / name, 3) if "width" not in each]
        done = run(*launcher, *SCRATCH, *own, f"--threads={threads}")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("test acc: ") == 1
    tensors = "pytorch-scratch-2dev.safetensors"
    ours, theirs = (load_file(tmp_path / name / tensors) for name in ("alone", "together"))
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()] == []


@pytest.mark.only("pytorch")
def test_torchrun_with_two_processes_of_data_parallel_is_refused(tmp_path: Path) -> None:
    done = run(*TORCHRUN, *CONCISE, *flags(tmp_path, 3), "--wrapper=dp", "--device-kind=cpu")
    assert done.returncode != 0
    assert re.search("^python -m .*: error: .*--wrapper dp needs GPUs", done.stderr, re.MULTILINE)
    assert "frameworks/pytorch/wrappers.py" not in done.stderr  # no traceback of it
    assert not list(tmp_path.iterdir())
