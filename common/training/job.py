"""What every process of a run does: train, and, in the first one, write the record."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from common.backends.devices import Process
from common.backends.interface import Chapter
from common.backends.loading import backend
from common.base.arrays import Weights
from common.base.errors import BusyError, RequestError, StoppedError
from common.base.files import remove_temporaries
from common.base.locks import held
from common.base.machine import peak_memory
from common.base.signals import Stop, stoppable
from common.data.dataset import Dataset
from common.models.initial import initial_weights
from common.models.weights_file import save_weights
from common.records.new import new_record
from common.records.record import Record, files_of
from common.records.store import write_failure, write_record
from common.settings.config import Config
from common.settings.request import Request
from common.terminal.streams import open_streams
from common.training.checkpoints import Checkpoint, Checkpoints
from common.training.loop import Outcome, Training
from common.training.messages import closing_line, introduction
from common.training.output_paths import require_output_paths
from common.training.process_agreement import Waiting, cluster, require_same
from common.training.reporter import Reporter
from common.training.resume import chosen, resumed, resumption


@dataclass(frozen=True)
class Job:
    """A run, ready to start. It is plain data: it can be sent to another process.

    Without `weights` it starts from those of its seed. `environment` has the variables that may
    change how it rounds.
    """

    request: Request
    data: Dataset
    weights: Weights | None
    command_line: list[str]
    started: str
    launcher: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, process: Process) -> None:
        """Trains on the process's devices; the first process speaks and writes for all.

        A signal is noted from the first moment on, and minded between two steps.
        """
        open_streams()  # this may be a process of its own
        # Whoever has started this process ends it, should a second signal come.
        with ExitStack() as stack, stoppable(patient=process.count > 1) as stop:
            report = Reporter(quiet=self.request.quiet or process.rank > 0)
            chapter = self.chapter()
            devices = chapter.devices(process, self.request.on_each(process))
            config, data = self.settled(len(devices.names), devices.kind)
            weights = self.initial_weights(config)
            record = self.new_record(config, data, weights, devices.names)
            if process.rank == 0:
                require_output_paths(self.request, config.devices)
                self.hold(record, stack, stop)
            waiting = Waiting(process)
            process = waiting.counted()
            # All look for checkpoints once nobody else writes any: an earlier run may just end.
            process.anyone(stop.asked)
            found = chosen(self.request, record, report)
            require_same(record, found, process)
            if found is not None:
                record = resumed(record, found)
            if process.rank == 0:
                report.notice(introduction(config, self.request.preset, devices.names))
                if found is not None:
                    report.notice(resumption(record, found))
                # It says "running" at once: should the run die, nobody takes it for complete.
                self.write(record)
            kept = self.checkpoints(record, found, process)
            training = Training(
                chapter, devices.local, config, data, report, kept, found, stop, process
            )
            self.train(training, weights, record, waiting)

    def train(self, training: Training, weights: Weights, record: Record, waiting: Waiting) -> None:
        """Trains, and leaves a record of what came of it."""
        process = waiting.process
        try:
            outcome = training.train(weights)
            joint = cluster(self.launcher, record.config, waiting)
        except StoppedError:
            if process.rank == 0:
                progress = training.progress
                so_far = {"losses": progress.losses, "epochs": progress.epochs}
                self.write(record.model_copy(update={"status": "interrupted", **so_far}))
            raise
        if process.rank == 0:
            self.finish(record.model_copy(update={"cluster": joint}), outcome)

    def chapter(self) -> Chapter[Any, Any, Any]:
        """The backend's module."""
        return backend(self.request.framework, self.request.chapter)

    def settled(self, devices: int, kind: str) -> tuple[Config, Dataset]:
        """The configuration, now that the devices are known, and the data it takes.

        Raises RequestError if they cannot do what is asked for.
        """
        if self.request.tf32 and kind == "cpu":
            raise RequestError("--tf32 needs GPUs: CPUs multiply all bits of the mantissa")
        request = self.request.resolve(devices, kind)
        data = request.examples(self.data)
        return request.config(data), data

    def initial_weights(self, config: Config) -> Weights:
        """What it starts from."""
        return self.weights or initial_weights(config.shapes(), config.seed, config.dtype)

    def new_record(
        self, config: Config, data: Dataset, weights: Weights, devices: list[str]
    ) -> Record:
        """The record of the run, which has not begun yet."""
        about = self.command_line, self.started, self.environment
        return new_record(config, data, weights, devices, *about)

    def hold(self, record: Record, stack: ExitStack, stop: Stop) -> None:
        """Keeps other runs of this name out of its folders, and clears what killed ones left.

        Raises BusyError if one is there, StoppedError if a signal ends the wait for its end.
        """
        folders = [self.request.out, self.request.checkpoint_dir or self.request.out]
        # One folder, spelled in two ways, would be held twice.
        for folder in {folder.resolve(): folder for folder in folders}.values():
            with write_failure(folder / record.file_name()):
                try:
                    stack.enter_context(held(folder, record.name()))
                except BusyError:
                    if stop.asked:
                        message = "stopped while another run was at work there"
                        raise StoppedError(message, status=stop.status) from None
                    raise
                remove_temporaries(folder, files_of(record.name()))

    def checkpoints(
        self, record: Record, found: Checkpoint | None, process: Process
    ) -> Checkpoints | None:
        """Where the run leaves checkpoints, if that is asked for."""
        request = self.request
        if request.checkpoint_dir is None:
            return None
        writes = process.rank == 0
        return Checkpoints(request.checkpoint_dir, request.checkpoint_every, record, writes, found)

    def finish(self, record: Record, outcome: Outcome) -> None:
        """Writes what the run leaves and prints the closing line. Raises RunError if it cannot."""
        if self.request.save_weights is not None:
            with write_failure(self.request.save_weights):
                save_weights(self.request.save_weights, trained_weights(outcome))
        complete = {
            "status": "complete",
            "losses": outcome.losses,
            "epochs": outcome.epochs,
            "peak_memory": peak_memory(),
        }
        self.write(record.model_copy(update=complete), outcome.tensors)
        print(closing_line(outcome, record.devices), flush=True)

    def write(self, record: Record, tensors: Weights | None = None) -> None:
        """Writes the record, and its tensors before it. Raises RunError if it cannot."""
        with write_failure(self.request.out / record.file_name()):
            write_record(self.request.out, record, tensors)


def trained_weights(outcome: Outcome) -> Weights:
    """The final weights, by their canonical names alone."""
    prefix = "weights/"
    return {
        name.removeprefix(prefix): values
        for name, values in outcome.tensors.items()
        if name.startswith(prefix)
    }
