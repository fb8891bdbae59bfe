"""What every process of a run does: train, and, in the first one, write the record."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from common.backends.interface import Chapter
from common.backends.loading import backend
from common.base.arrays import Weights
from common.base.errors import RunError
from common.base.machine import peak_memory
from common.data.dataset import Dataset
from common.models.weights_file import save_weights
from common.records.record import Record
from common.records.store import read_record, write_record
from common.settings.config import Config
from common.terminal.streams import open_streams, require_printed
from common.training.loop import Outcome, Training
from common.training.reporter import Reporter


@dataclass(frozen=True)
class Job:
    """A run, ready to start. It can be sent to another process: it holds no framework's objects."""

    devices: Sequence[Any]
    config: Config
    data: Dataset
    weights: Weights
    record: Record
    out: Path
    save_weights: Path | None
    introduction: str
    quiet: bool

    def __call__(self, rank: int) -> None:
        """Trains; the first process (`rank` 0) speaks and writes for all.

        The record says "running" at once, so that an earlier one is not taken for this run's,
        should it die.
        """
        open_streams()  # this may be a process of its own
        report = Reporter(quiet=self.quiet or rank > 0)
        report.notice(self.introduction)
        training = Training(self.chapter(), self.devices, self.config, self.data, report)
        replicas = training.replicate(self.weights)
        if rank == 0:
            self.write(self.record)
        outcome = training.train(replicas, self.weights)
        if rank == 0:
            self.finish(outcome)

    def chapter(self) -> Chapter[Any, Any]:
        """The backend's module."""
        return backend(self.config.framework, self.config.chapter)

    def finish(self, outcome: Outcome) -> None:
        """Writes what the run leaves and prints the closing line. Raises RunError if it cannot."""
        if self.save_weights is not None:
            save_weights(self.save_weights, trained_weights(outcome))
        complete = {
            "status": "complete",
            "losses": outcome.losses,
            "epochs": outcome.epochs,
            "peak_memory": peak_memory(),
        }
        self.write(self.record.model_copy(update=complete), outcome.tensors)
        print(closing_line(outcome, self.record.devices), flush=True)
        require_printed()

    def write(self, record: Record, tensors: Weights | None = None) -> None:
        """Writes the record, and its tensors before it. Raises RunError if there is no place."""
        try:
            write_record(self.out, record, tensors)
        except (OSError, SafetensorError) as error:
            path = self.out / self.record.file_name()
            raise RunError(f"cannot write {path}: {error}") from None

    def mark_failed(self, failure: str) -> None:
        """Says so in the record, unless it is complete or a later run's; no earlier one stays."""
        path, found = self.out / self.record.file_name(), None
        with suppress(RunError):
            found = read_record(path)
        ours = found is None or _begin(found) == _begin(self.record)
        if found and (found.status != "running" if ours else found.started >= self.record.started):
            return
        try:
            self.write(self.record.model_copy(update={"status": "failed", "failure": failure}))
        except RunError:
            if not ours:
                with suppress(OSError):
                    path.unlink()


def trained_weights(outcome: Outcome) -> Weights:
    """The final weights, by their canonical names alone."""
    prefix = "weights/"
    return {
        name.removeprefix(prefix): values
        for name, values in outcome.tensors.items()
        if name.startswith(prefix)
    }


def _begin(record: Record) -> tuple[str, list[str]]:
    """What tells a run's own record from another run's."""
    return record.started, record.command


def closing_line(outcome: Outcome, devices: Sequence[str]) -> str:
    """The book's closing line."""
    last = outcome.epochs[-1]
    seconds = sum(epoch.seconds for epoch in outcome.epochs) / len(outcome.epochs)
    return f"test acc: {last.test_accuracy:.2f}, {seconds:.1f} sec/epoch on {names(devices)}"


def names(devices: Sequence[Any]) -> str:
    """The devices as the book prints them."""
    return f"[{', '.join(str(device) for device in devices)}]"
