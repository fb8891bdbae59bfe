"""What every process of a run does: train, and, in the first one, write the record."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from common.backends.devices import DeviceRequest, Process
from common.backends.interface import Chapter
from common.backends.loading import backend
from common.base.arrays import Weights, part
from common.base.errors import RequestError, StoppedError
from common.base.files import remove_temporaries
from common.base.locks import held
from common.base.machine import peak_memory
from common.base.signals import stoppable
from common.chapters.chapters import SPECS
from common.data.dataset import Dataset
from common.models.initial import initial_weights
from common.models.weights_file import save_weights
from common.records.new import cluster, new_record
from common.records.record import Record, files_of
from common.records.store import write_failure, write_record
from common.settings.config import Config
from common.settings.files import Files
from common.terminal.streams import open_streams
from common.training.checkpoints import Checkpoint, Checkpoints
from common.training.loop import Outcome, Training
from common.training.reporter import Reporter, closing_line, introduction
from common.training.resume import (
    choose_checkpoint,
    require_same,
    resumed_record,
    resumption_notice,
)


@dataclass(frozen=True)
class Job:
    """A run, ready to start. It is plain data: it can be sent to another process.

    `settings` are those of all flags. Without `weights` it starts from those of its seed.
    `environment` has the variables that may change how it rounds.
    """

    settings: Mapping[str, Any]
    files: Files
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
        # Among several processes, a second signal ends the one that has started this one.
        with ExitStack() as stack, stoppable(patient=process.count > 1) as stop:
            report = Reporter(quiet=self.files.quiet or process.rank > 0)
            chapter = self.chapter()
            devices = chapter.devices(process, self.request.on_each(process))
            config, data = self.settled(len(devices.names), devices.kind)
            weights = self.weights or initial_weights(config.shapes(), config.seed, config.dtype)
            about = self.command_line, self.started, self.environment
            record = new_record(config, data, weights, devices.names, *about)
            record = record.model_copy(update={"cluster": cluster(self.launcher, config, process)})
            if process.rank == 0:
                self.files.require_output_paths(record.file_name())
                self.hold(record, stack)
            # All look for checkpoints once no other run writes any: an earlier one may just end.
            process.anyone(stop.asked)
            found = choose_checkpoint(self.files, record, report)
            require_same(record, found, process)
            if found is not None:
                record = resumed_record(record, found)
            if process.rank == 0:
                report.notice(introduction(config, self.settings["preset"], devices.names))
                if found is not None:
                    report.notice(resumption_notice(record, found))
                # It says "running" at once: should the run die, it is not taken for complete.
                self.write(record)
            training = Training(
                chapter,
                devices.local,
                config,
                data,
                report,
                self.checkpoints(record, found, process),
                found,
                stop,
                process,
                # So whatever writes the record or a checkpoint tells how far the run has come.
                Outcome(record.losses, record.epochs),
            )
            try:
                outcome = training.train(weights)
                process.gather(0)  # no record is complete before all processes are done
            except StoppedError:
                if process.rank == 0:
                    self.write(record.model_copy(update={"status": "interrupted"}))
                raise
            if process.rank == 0:
                self.finish(record, outcome)

    def checkpoints(
        self, record: Record, found: Checkpoint | None, process: Process
    ) -> Checkpoints | None:
        """Where checkpoints go, if any are asked for."""
        if (folder := self.files.checkpoint_dir) is None:
            return None
        every, last = self.files.checkpoint_every, found.path if found else None
        return Checkpoints(folder, every, record, process.rank == 0, last)

    @property
    def framework(self) -> str:
        """The framework that trains."""
        framework: str = self.settings["framework"]
        return framework

    @property
    def request(self) -> DeviceRequest:
        """The devices that are asked for."""
        return DeviceRequest.of(self.settings)

    @property
    def options(self) -> Any:
        """The chapter's own options, of which a preset may yet have to decide some."""
        return SPECS[self.settings["chapter"]].chosen(self.settings)

    def chapter(self) -> Chapter:
        """The backend's module."""
        return backend(self.framework, self.settings["chapter"])

    def settled(self, devices: int, kind: str) -> tuple[Config, Dataset]:
        """The configuration, now that the devices are known, and the data it takes.

        Raises RequestError if they cannot do what is asked for.
        """
        if self.settings["tf32"] and kind == "cpu":
            raise RequestError("--tf32 needs GPUs: CPUs multiply all bits of the mantissa")
        config = Config.of(self.settings, devices, kind, self.data.name, self.data.sizes())
        return config, self.data.first(config.train_examples, config.test_examples)

    def hold(self, record: Record, stack: ExitStack) -> None:
        """Keeps other runs of this name out of its folders, and clears what killed ones left.

        Raises BusyError if one is there.
        """
        folders = self.files.folders()
        # One folder, spelled in two ways, would be held twice.
        for folder in {folder.resolve(): folder for folder in folders}.values():
            with write_failure(folder / record.file_name()):
                stack.enter_context(held(folder, record.name()))
                remove_temporaries(folder, files_of(record.name()))

    def finish(self, record: Record, outcome: Outcome) -> None:
        """Writes what the run leaves and prints the closing line. Raises RunError if it cannot."""
        if self.files.save_weights is not None:
            with write_failure(self.files.save_weights):
                save_weights(self.files.save_weights, part(outcome.tensors, "weights/"))
        complete = {
            "status": "complete",
            "peak_memory": peak_memory(),
            "split": outcome.split,
        }
        self.write(record.model_copy(update=complete), outcome.tensors)
        print(closing_line(outcome.epochs, record.devices), flush=True)

    def write(self, record: Record, tensors: Weights | None = None) -> None:
        """Writes the record, and its tensors before it. Raises RunError if it cannot."""
        write_record(self.files.out / record.file_name(), record, tensors)
