"""Runs that are killed and resumed, beside one that was never stopped."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from signal import SIGKILL

import numpy as np
from started import SECONDS, descendants, require_gone

from common.backends.frameworks import WRAPPERS
from common.chapters.concise import BATCH_NORMS
from common.chapters.scratch import ALLREDUCES
from common.chapters.strategies import SCHEDULES, STRATEGIES, StrategiesOptions
from common.records.record import Record, run_name
from common.records.store import read_record, read_tensors
from common.training.checkpoints import checkpoints_in, read_checkpoint

ROOT = Path(__file__).parents[2]
SMALL = (
    *("--dataset=synthetic", "--train-examples=139", "--test-examples=50", "--batch-size=20"),
    *("--epochs=3", "--threads=2", "--quiet"),
)
"""Three epochs of seven steps; the last minibatch of each is uneven on three devices.

Its largest shard is as large as the others', so that JAX compiles no other program for it.
"""


@dataclass(frozen=True)
class Case:
    """A chapter on so many devices, with options of its own."""

    chapter: str
    devices: int
    options: tuple[str, ...]
    way: str = ""

    def __str__(self) -> str:
        """As a test is called."""
        return "-".join([self.chapter, str(self.devices), *(o.lstrip("-") for o in self.options)])

    def name(self, framework: str) -> str:
        """What the files of its run are called."""
        return run_name(framework, self.chapter, self.devices, self.way)


def first_cases(framework: str) -> list[Case]:
    """One case of each chapter, on 3 devices, in the framework's default way."""
    options = (f"--wrapper={WRAPPERS[framework][0]}", "--width=4")
    return [Case("scratch", 3, ()), Case("concise", 3, options)]


def cases(framework: str) -> Iterator[Case]:
    """Every allreduce on 3 devices, the book's also on 1 and 2; all ways to normalize and wrap.

    And all ways to split, by hand and by the framework's own means, on 3.
    """
    yield from (Case("scratch", 3, (f"--allreduce={name}",)) for name in ALLREDUCES)
    yield from (Case("scratch", devices, ("--allreduce=star",)) for devices in (1, 2))
    wrappers = [each for each in WRAPPERS[framework] if each != "dp"]  # which needs GPUs
    for wrapper, mode, devices in product(wrappers, BATCH_NORMS, (1, 2, 3)):
        options = (f"--batch-norm={mode}", f"--wrapper={wrapper}", "--width=4")
        yield Case("concise", devices, options)
    for name in STRATEGIES:
        split = f"--strategy={name}", "--microbatches=2"
        yield Case("strategies", 3, split, name)
        for order in SCHEDULES:  # a framework's own means give few of them
            if not StrategiesOptions(name, schedule=order).no_native(framework):
                of_pipeline = (f"--schedule={order}",) if name == "pipeline" else ()
                own = (*split, "--native", *of_pipeline)
                yield Case("strategies", 3, own, f"native-{name}")
                break


@dataclass(frozen=True)
class Runner:
    """Runs a case in a framework, below a folder."""

    framework: str
    case: Case
    folder: Path

    @property
    def name(self) -> str:
        """What the files of its runs are called."""
        return self.case.name(self.framework)

    def command(self, name: str, *flags: str, launcher: Sequence[str] = ()) -> list[str]:
        """What runs it, with its record and its checkpoints in the folder `name`."""
        case, module = self.case, f"frameworks.{self.framework}.{self.case.chapter}"
        return [
            *(sys.executable, *launcher, "-m", module, *SMALL),
            *(f"--devices={case.devices}", *case.options, "--checkpoint-every=2"),
            *(f"--out={self.folder / name}", f"--checkpoint-dir={self.folder / name}", *flags),
        ]

    def start(
        self, name: str, *flags: str, launcher: Sequence[str] = ()
    ) -> "subprocess.Popen[str]":
        """Starts a run that has its record and its checkpoints in the folder `name`."""
        return subprocess.Popen(
            self.command(name, *flags, launcher=launcher),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, name: str, *flags: str) -> tuple[float, float]:
        """Runs it to its end; the seconds that took, and those after its first checkpoint."""
        started, kept, before = time.monotonic(), 0.0, self.newest(name)
        run = self.start(name, *flags)
        while run.poll() is None and not kept:
            time.sleep(0.01)
            kept = time.monotonic() if self.newest(name) != before else 0.0
        _, err = run.communicate(timeout=SECONDS)
        assert run.returncode == 0, err
        ended = time.monotonic()
        return ended - started, ended - (kept or ended)

    def kill(self, name: str, seconds: float, *, later: bool) -> bool:
        """Starts a run and kills it after so many seconds; whether it was still running.

        `later`: the seconds count from when it has written a checkpoint.
        """
        before = self.newest(name)
        run = self.start(name, "--resume")
        while later and run.poll() is None and self.newest(name) == before:
            time.sleep(0.01)
        with suppress(subprocess.TimeoutExpired):
            run.wait(timeout=seconds)
        processes = [run.pid, *descendants(run.pid)]
        run.send_signal(SIGKILL)
        _, err = run.communicate()
        assert run.returncode in (0, -SIGKILL), err
        require_gone(processes)
        return run.returncode == -SIGKILL

    def newest(self, name: str) -> int:
        """The step of a run's newest checkpoint; 0 if there is none."""
        found = checkpoints_in(self.folder / name, self.name)
        return int(found[0].stem.rpartition("-step")[2]) if found else 0

    def path(self, name: str) -> Path:
        """Where a run leaves its record."""
        return self.folder / name / f"{self.name}.json"

    def record(self, name: str) -> Record:
        """The record that a run has left."""
        return read_record(self.path(name))

    def tensors(self, name: str) -> dict[str, np.ndarray]:
        """The tensors of a run's record."""
        return dict(read_tensors(self.path(name), self.record(name)))

    def bits(self, name: str) -> dict[str, object]:
        """The bits of a run's record and of its last checkpoint, except for times."""
        record = self.record(name)
        assert record.status == "complete"
        last = read_checkpoint(checkpoints_in(self.folder / name, self.name)[0]).tensors
        tensors = {f"record/{key}": values for key, values in self.tensors(name).items()} | last
        found = {key: each.tobytes() for key, each in tensors.items() if key != "epoch/seconds"}
        accuracies = [epoch.test_accuracy for epoch in record.epochs]
        return {"losses": record.losses, "accuracies": accuracies, **found}

    def require_same(self, name: str, other: str) -> None:
        """Two runs have the same bits."""
        ours, theirs = self.bits(name), self.bits(other)
        assert ours.keys() == theirs.keys()
        assert [key for key in ours if ours[key] != theirs[key]] == []
