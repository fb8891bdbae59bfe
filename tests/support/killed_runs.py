"""Runs that are killed and resumed, and one that was never stopped."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from started import ROOT

from common.records.record import Record, read_record, read_tensors, record_name
from common.training.checkpoints import checkpoints_in, read_checkpoint

SMALL = (
    *("--dataset=synthetic", "--train-examples=139", "--test-examples=50", "--batch-size=20"),
    *("--epochs=3", "--threads=2", "--quiet"),
)
"""Three epochs of seven steps; the last minibatch of each is uneven on three devices.

Its largest shard has the size of the others', so that JAX compiles no second program.
"""


@dataclass(frozen=True)
class Case:
    """A chapter with the number of devices and its options."""

    chapter: str
    devices: int
    options: tuple[str, ...]
    way: str = ""

    def __str__(self) -> str:
        """The name in a test's id."""
        return "-".join([self.chapter, str(self.devices), *(o.lstrip("-") for o in self.options)])


@dataclass(frozen=True)
class Runner:
    """Runs a case in a framework, below a folder."""

    framework: str
    case: Case
    folder: Path

    @property
    def name(self) -> str:
        """The name of its runs' files."""
        case = self.case
        record = record_name(self.framework, case.chapter, case.devices, case.way)
        return record.removesuffix(".json")

    def start(self, name: str, *flags: str) -> "subprocess.Popen[str]":
        """Starts a run with record and checkpoints in the folder `name`."""
        case, folder = self.case, self.folder / name
        command = [sys.executable, "-m", f"frameworks.{self.framework}.{case.chapter}", *SMALL]
        command += [f"--devices={case.devices}", *case.options, "--checkpoint-every=2"]
        return subprocess.Popen(
            [*command, f"--out={folder}", f"--checkpoint-dir={folder}", *flags],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def newest(self, name: str) -> int:
        """The step of a run's newest checkpoint; 0 if there is none."""
        checkpoints = checkpoints_in(self.folder / name, self.name)
        return int(checkpoints[0].stem.rpartition("-step")[2]) if checkpoints else 0

    def path(self, name: str) -> Path:
        """The path of a run's record."""
        return self.folder / name / f"{self.name}.json"

    def record(self, name: str) -> Record:
        """The record that a run has left."""
        return read_record(self.path(name))

    def bits(self, name: str) -> dict[str, object]:
        """The bits of a run's record and of its last checkpoint, except for times."""
        record = self.record(name)
        assert record.status == "complete"
        last = read_checkpoint(checkpoints_in(self.folder / name, self.name)[0]).tensors
        ours = read_tensors(self.path(name), record)
        tensors = {f"record/{key}": values for key, values in ours.items()} | last
        data = {key: values.tobytes() for key, values in tensors.items() if key != "epoch/seconds"}
        exact = {"test_accuracy", "minibatches_sha256"}
        epochs = [epoch.model_dump(include=exact) for epoch in record.epochs]
        return {"losses": record.losses, "epochs": epochs, **data}

    def require_same(self, first: str, second: str) -> None:
        """Asserts that two runs have the same bits."""
        ours, theirs = self.bits(first), self.bits(second)
        assert ours.keys() == theirs.keys()
        assert [key for key in ours if ours[key] != theirs[key]] == []
