"""Runs as several processes that meet on this machine, with no framework, for tests to hurt."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

import pytest
from numpy_chapter import PLACE, standing_in
from started import free_port, require_proc, with_signals
from summing_chapter import Hurt, SummingChapter, nothing

from common.data.synthetic import synthetic
from common.records.store import read_record
from common.training.cli import main

COUNT: Final = 3
FLAGS: Final = (
    *("--devices=3", "--batch-size=10", "--steps=7", "--dataset=synthetic", "--out=out"),
    *("--dtype=float64", "--threads=2"),
)
RECORD: Final = Path("out", "pytorch-scratch-3dev.json")

BEAT: Final = 0.2
FAST: Final = {
    "common.base.control.BEAT": BEAT,
    "common.base.control.GRACE": 1.0,
    "common.base.children.FREEZE": 14 * BEAT,
    "common.hosts.supervise.NOTICE": 0.5,
}
"""Heartbeats five times as fast."""

LIMIT: Final = 12
"""Seconds in which all have ended, with fast heartbeats."""

NONE: Final[Mapping[Any, Any]] = {}

SOON: Final = 20
"""Seconds in which all have ended, also with real heartbeats and on a busy machine."""


@dataclass
class Started:
    """A process of a run, as a launcher starts it, with what it says."""

    process: BaseProcess
    said: Path

    @property
    def pid(self) -> int:
        """The process's id, which is also that of its process group."""
        assert self.process.pid
        return self.process.pid

    def send(self, number: signal.Signals) -> None:
        """Sends a signal only to this process, not to its children."""
        os.kill(self.pid, number)

    def send_all(self, number: signal.Signals) -> None:
        """Sends a signal to its process group, as if the whole host were hurt."""
        os.killpg(self.pid, number)

    def out(self) -> str:
        """Its standard output."""
        return self.said.with_suffix(".out").read_text()

    def err(self) -> str:
        """Its standard error."""
        path = self.said.with_suffix(".err")
        return path.read_text() if path.exists() else ""

    def ended(self, seconds: float = SOON) -> tuple[int | None, str]:
        """Its exit status and standard error, once its process group has ended."""
        limit = time.monotonic() + seconds
        self.process.join(seconds)
        while members(self.pid):
            assert time.monotonic() < limit + 1, (self.err(), members(self.pid))
            time.sleep(0.02)
        return self.process.exitcode, self.err()


def members(group: int) -> list[int]:
    """The processes of a group that run or are frozen."""
    require_proc()
    pids = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            state, _, process_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(process_group) == group and state != "Z":
                pids.append(int(entry.name))
    return pids


@dataclass
class Together:
    """Starts processes of runs in a folder, and ends them after the test."""

    folder: Path
    port: int = field(default_factory=free_port)
    fast: Mapping[str, Any] = field(default_factory=lambda: FAST)
    everyone: list[Started] = field(default_factory=list)

    def start(
        self, rank: int, *flags: str, hurt: Hurt = nothing, patches: Mapping[str, Any] = NONE
    ) -> Started:
        """Starts one process of a run."""
        place = ("--coordinator", f"localhost:{self.port}", f"--hosts={COUNT}")
        line = [*FLAGS, *place, f"--host-rank={rank}", *flags]
        return self.command(line, SummingChapter(hurt), {**self.fast, **patches})

    def command(
        self, line: list[str], chapter: SummingChapter, patches: Mapping[str, Any] = NONE
    ) -> Started:
        """Starts the command with these flags."""
        said = self.folder / f"said{len(self.everyone)}"
        process = multiprocessing.get_context("fork").Process(
            target=_become, args=(line, self.folder, said, chapter, patches)
        )
        with with_signals():
            process.start()
        self.everyone.append(Started(process, said))
        return self.everyone[-1]

    def all(self, *flags: str, hurt: Mapping[int, Hurt] = NONE, **how: Any) -> list[Started]:
        """Starts all processes of a run, of which some are hurt, by rank."""
        hurts = [hurt.get(rank, nothing) for rank in range(COUNT)]
        return [self.start(rank, *flags, hurt=act, **how) for rank, act in enumerate(hurts)]

    def end(self) -> None:
        """Ends all of them."""
        for started in self.everyone:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.process.join()


@pytest.fixture
def together(tmp_path: Path) -> Iterator[Together]:
    """Runs in the test's folder; all are ended after it."""
    runs = Together(tmp_path)
    yield runs
    runs.end()


def record(together: Together) -> tuple[str, str]:
    """The status and the failure in a run's record."""
    stored = read_record(together.folder / RECORD)
    return stored.status, stored.failure.message if stored.failure else ""


def require_line(runs: list[Started], words: str, seconds: float = LIMIT, status: int = 1) -> None:
    """Asserts that all end with the status, and one line that contains `words`."""
    for run in runs:
        exit_status, err = run.ended(seconds)
        assert err.startswith("python -m frameworks.pytorch.scratch: error: "), err
        assert (exit_status, words in err, err.count("\n")) == (status, True, 1), err


def wait_until(holds: Callable[[], bool], else_said: str = "") -> None:
    """Returns as soon as it holds."""
    limit = time.monotonic() + SOON
    while not holds():
        assert time.monotonic() < limit, else_said
        time.sleep(0.01)


def _become(
    line: list[str], folder: Path, said: Path, chapter: SummingChapter, patches: Mapping[str, Any]
) -> None:
    """Runs the command line as a process that a shell started."""
    os.setpgrp()
    os.chdir(folder)
    for number, suffix in ((1, ".out"), (2, ".err")):
        file = os.open(said.with_suffix(suffix), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, number)
    sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
    patch = pytest.MonkeyPatch()
    for name, value in patches.items():
        patch.setattr(name, value)
    patch.setattr("common.data.dataset.synthetic", partial(synthetic, 30, 10))
    patch.setenv("OMP_NUM_THREADS", "1")
    sys.modules[PLACE] = standing_in(chapter)
    sys.exit(main("pytorch", "scratch", line))
