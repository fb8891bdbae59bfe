"""What every process of a run does: train; the first one also writes the record."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from socket import gethostname
from typing import Any

from common.backends.devices import DeviceRequest, Process
from common.backends.loading import backend, package
from common.base.arrays import Weights, part
from common.base.files import remove_temporaries
from common.base.locks import held
from common.base.machine import describe_machine, peak_memory
from common.base.signals import stoppable
from common.chapters.chapters import spec
from common.data.dataset import Dataset
from common.models.initial import initial_weights
from common.models.weights_file import digest, load_weights, save_weights
from common.records.fingerprint import gpus_here, source_digest, versions
from common.records.record import Cluster, Record, files_of
from common.records.store import write_failure, write_record
from common.settings.config import Config
from common.terminal.streams import open_streams
from common.training.checkpoints import (
    Checkpoints,
    Files,
    choose_checkpoint,
    require_alike,
    resumed,
)
from common.training.loop import Outcome, Training
from common.training.reporter import Reporter, closing_line, introduction


@dataclass(frozen=True)
class Job:
    """A run, ready to start, as plain data."""

    settings: Mapping[str, Any]
    files: Files
    data: Dataset
    command_line: list[str]
    started: str
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, process: Process) -> None:
        """Trains on the process's devices; a signal stops it between two steps."""
        open_streams()  # this may be a process of its own
        first = process.rank == 0
        # Among several processes, a second signal ends the one that has started this one.
        with ExitStack() as stack, stoppable(patient=process.count > 1) as stop:
            report = Reporter(quiet=self.files.quiet or not first)
            chapter = backend(self.settings["framework"], self.settings["chapter"])
            devices = chapter.devices(process, self.request.on_each(process))
            names = devices.names(process)
            config, data, weights = self.settled(len(names), devices.kind)
            record = self.record(config, data, weights, names, process)
            if first:
                self.files.require_output_paths(record.file_name())
                self.hold(record, stack)
            process.any(stop.asked)  # only now does no earlier run write checkpoints
            found = choose_checkpoint(self.files, record, report)
            require_alike(record, found, process)
            report.notice(introduction(config, self.settings["preset"], names))
            if found:
                record = resumed(record, found, report)
            if first:
                # It says "running" at once, in case the run dies.
                self.write(record)
            checkpoints = None
            if folder := self.files.checkpoint_dir:
                every = self.files.checkpoint_every or config.steps_of_whole()
                checkpoints = Checkpoints(folder, every, record, found and found.path)
            training = Training(
                chapter,
                devices.local,
                config,
                data,
                report,
                checkpoints,
                found,
                stop,
                process,
                Outcome(record.losses, record.epochs),  # a checkpoint's record shares these lists
            )
            outcome = training.train(weights)
            process.any(stop.asked)  # no record is complete before all processes are done
            if first:
                self.finish(record, outcome)

    @property
    def request(self) -> DeviceRequest:
        return DeviceRequest.of(self.settings)

    @property
    def options(self) -> Any:
        """The chapter's options, some of which a preset may decide."""
        return spec(self.settings["chapter"]).chosen(self.settings)

    def settled(self, devices: int, kind: str) -> tuple[Config, Dataset, Weights]:
        """The configuration on these devices, its data and initial weights. Raises RequestError."""
        config = Config.of(self.settings, devices, kind, self.data.name, self.data.sizes())
        data = self.data.first(config.train_examples, config.test_examples)
        return config, data, starting_weights(config, self.settings["init_weights"])

    def record(
        self, config: Config, data: Dataset, weights: Weights, devices: list[str], process: Process
    ) -> Record:
        framework, chapter, kind = config.framework, config.chapter, config.device_kind
        cluster = None
        if process.engine:
            cluster = Cluster(engine=process.engine, hosts=process.gather(gethostname()))
        return Record(
            framework=framework,
            chapter=chapter,
            status="running",
            command=["python", "-m", f"frameworks.{framework}.{chapter}", *self.command_line],
            started=self.started,
            machine=describe_machine() | (gpus_here() if kind == "gpu" else {}),
            environment=self.environment,
            versions=versions(("numpy", *package(framework).DISTRIBUTIONS)),
            source_sha256=source_digest(framework),
            devices=devices,
            config=config,
            data_sha256=data.digest(),
            initial_weights_sha256=digest(weights),
            cluster=cluster,
        )

    def hold(self, record: Record, stack: ExitStack) -> None:
        """Locks its folders for runs of this name, and clears them. Raises BusyError."""
        folders = self.files.folders()
        # One folder under two names must not be locked twice.
        for folder in {folder.resolve(): folder for folder in folders}.values():
            with write_failure(folder / record.file_name()):
                stack.enter_context(held(folder, record.name()))
                remove_temporaries(folder, files_of(record.name()))

    def finish(self, record: Record, outcome: Outcome) -> None:
        """Writes the outputs and prints the closing line. Raises RunError."""
        if self.files.save_weights is not None:
            with write_failure(self.files.save_weights):
                save_weights(self.files.save_weights, part(outcome.tensors, "weights/"))
        # Where nothing was left to do, the checkpoint's record has them.
        peak = max(record.peak_memory or 0, peak_memory())
        measured = {"peak_memory": peak, "split": outcome.split or record.split}
        self.write(record.model_copy(update={"status": "complete", **measured}), outcome.tensors)
        line = closing_line(record.epochs, record.devices, record.timed_epochs())
        print("; ".join(filter(None, (line, record.another_setup()))), flush=True)

    def write(self, record: Record, tensors: Weights | None = None) -> None:
        """Writes the tensors, if any, and the record. Raises RunError."""
        write_record(self.files.out / record.file_name(), record, tensors)


def starting_weights(config: Config, path: Path | None) -> Weights:
    """The weights in the file at `path`, else those of the seed. Raises RequestError."""
    if path:
        return load_weights(path, config.shapes(), config.dtype)
    return initial_weights(config.shapes(), config.seed, config.dtype)
