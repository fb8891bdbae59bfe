"""What every process of a run does: train, and, in the first one, write the record."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from safetensors import SafetensorError

from common.backends.devices import Process
from common.backends.interface import Chapter
from common.backends.loading import backend
from common.base.arrays import Weights
from common.base.errors import RequestError, RunError
from common.base.machine import peak_memory
from common.data.dataset import Dataset
from common.models.initial import initial_weights
from common.models.weights_file import save_weights
from common.records.new import failure_of, new_record
from common.records.record import Record, record_name
from common.records.store import read_record, write_record
from common.settings.config import Config
from common.settings.request import Request
from common.terminal.streams import open_streams, require_printed
from common.training.loop import Outcome, Training
from common.training.places import require_places
from common.training.reporter import Reporter
from common.training.words import closing_line, introduction


@dataclass(frozen=True)
class Job:
    """A run, ready to start. It is plain data: it can be sent to another process.

    Without `weights` it starts from those of its seed.
    """

    request: Request
    data: Dataset
    weights: Weights | None
    command_line: list[str]
    started: str

    def __call__(self, process: Process) -> None:
        """Trains on the process's devices; the first process speaks and writes for all.

        The record says "running" at once, so that an earlier one is not taken for this run's,
        should it die.
        """
        open_streams()  # this may be a process of its own
        report = Reporter(quiet=self.request.quiet or process.rank > 0)
        chapter = self.chapter()
        devices = chapter.devices(process, self.request.wanted)
        config, data = self.settled(len(devices.names), devices.kind)
        weights = self.initial_weights(config)
        record = self.new_record(config, data, weights, devices.names)
        if process.rank == 0:
            require_places(self.request, config.devices)
            report.notice(introduction(config, self.request.preset, devices.names))
            self.begin(record)
        outcome = Training(chapter, devices.own, config, data, report).train(weights)
        if process.rank == 0:
            self.finish(record, outcome)

    def chapter(self) -> Chapter[Any, Any, Any]:
        """The backend's module."""
        return backend(self.request.framework, self.request.chapter)

    def settled(self, devices: int, kind: str) -> tuple[Config, Dataset]:
        """The configuration, now that the devices are known, and the data it takes."""
        request = self.request.with_preset(devices, kind)
        data = request.examples(self.data)
        return request.config(data), data

    def initial_weights(self, config: Config) -> Weights:
        """What it starts from."""
        return self.weights or initial_weights(config.shapes(), config.seed, config.dtype)

    def new_record(
        self, config: Config, data: Dataset, weights: Weights, devices: list[str]
    ) -> Record:
        """The record of the run, which has not begun yet."""
        return new_record(config, data, weights, devices, self.command_line, self.started)

    def begin(self, record: Record) -> None:
        """Says that the run is running. If it cannot, no earlier record stays, either."""
        try:
            self.write(record)
        except RunError:
            with suppress(OSError):
                (self.request.out / record.file_name()).unlink()
            raise

    def finish(self, record: Record, outcome: Outcome) -> None:
        """Writes what the run leaves and prints the closing line. Raises RunError if it cannot."""
        if self.request.save_weights is not None:
            save_weights(self.request.save_weights, trained_weights(outcome))
        complete = {
            "status": "complete",
            "losses": outcome.losses,
            "epochs": outcome.epochs,
            "peak_memory": peak_memory(),
        }
        self.write(record.model_copy(update=complete), outcome.tensors)
        print(closing_line(outcome, record.devices), flush=True)
        require_printed()

    def write(self, record: Record, tensors: Weights | None = None) -> None:
        """Writes the record, and its tensors before it. Raises RunError if there is no place."""
        try:
            write_record(self.request.out, record, tensors)
        except (OSError, SafetensorError) as error:
            path = self.request.out / record.file_name()
            raise RunError(f"cannot write {path}: {error}") from None

    def mark_failed(self, error: BaseException) -> None:
        """Says so in the record of this run, unless it is complete; no earlier one stays.

        A request that was refused before the run had begun leaves everything as it was.
        """
        failed = {"status": "failed", "failure": failure_of(error)}
        with suppress(Exception):  # what ended the run is what matters
            record = self.begun()
            if record is None and not isinstance(error, RequestError):
                record = self.not_begun()
            if record is not None and record.status == "running":
                self.write(record.model_copy(update=failed))

    def begun(self) -> Record | None:
        """The record that the run has left so far."""
        names = record_name(self.request.framework, self.request.chapter, "*")
        for path in self.request.out.glob(names):
            with suppress(RunError):
                found = read_record(path)
                if found.started == self.started and found.command[3:] == self.command_line:
                    return found
        return None

    def not_begun(self) -> Record | None:
        """The record of a run that ended before it had left one.

        None if it is not known how many devices it would have had, or if a later run's is there.
        """
        request = self.request
        count, kind = request.devices or 0, "gpu" if request.device_kind == "gpu" else "cpu"
        with suppress(Exception):  # a framework may not make its devices twice
            devices = self.chapter().devices(Process(), request.wanted)
            count, kind = len(devices.names), devices.kind
        if not count:
            return None
        path = request.out / record_name(request.framework, request.chapter, count)
        with suppress(RunError):
            if read_record(path).started > self.started:
                return None
        config, data = self.settled(count, kind)
        return self.new_record(config, data, self.initial_weights(config), [])


def trained_weights(outcome: Outcome) -> Weights:
    """The final weights, by their canonical names alone."""
    prefix = "weights/"
    return {
        name.removeprefix(prefix): values
        for name, values in outcome.tensors.items()
        if name.startswith(prefix)
    }
