"""A run: settled before a framework is loaded, then trained in each of its processes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import Any

from common.backends.frameworks import launched
from common.backends.interface import Process
from common.backends.loading import backend, import_backend, package, placed, variables_blamed
from common.base.arrays import Weights, part
from common.base.errors import StoppedError
from common.base.files import held, remove_temporaries
from common.base.machine import describe_machine, gpus_here, now, peak_memory, versions
from common.base.signals import stoppable
from common.data.dataset import Dataset, load
from common.models.weights_file import (
    bfloat16_note,
    digest,
    initial_weights,
    load_weights,
    save_weights,
)
from common.records.record import (
    Cluster,
    Failure,
    Record,
    files_of,
    name_of,
    read_record,
    source_digest,
    write_failure,
    write_record,
)
from common.settings.config import Config
from common.terminal.command import open_streams
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
class Run:
    """What a run computes, on which data, and which files it reads and writes, as plain data.

    `asked` is the preset that the flag names, "auto" among them; `environment` has the variables
    that the framework reads.
    """

    config: Config
    files: Files
    data: Dataset
    asked: str
    command_line: Sequence[str]
    started: str
    environment: Mapping[str, str]

    def __call__(self, process: Process) -> None:
        """Trains on the process's devices; a signal stops it between two steps."""
        open_streams()  # this may be a process of its own
        config, first = self.config, process.rank == 0
        # Among several processes, a second signal ends the one that has started this one.
        with ExitStack() as stack, stoppable(patient=process.count > 1) as stop:
            report = Reporter(quiet=self.files.quiet or not first)
            chapter = backend(config.framework, config.chapter)
            devices = chapter.devices(process, config.request.on_each(process))
            names = devices.names(process)
            weights = starting_weights(config)
            record = self.record(weights, names, process)
            if first:
                self.hold(record, stack)
            process.any(stop.asked)  # only now does no earlier run write checkpoints
            found = choose_checkpoint(self.files, record, report)
            require_alike(record, found, process)
            report.notice(introduction(config, self.asked, names))
            if found:
                record = resumed(record, found, report)
            if first:
                # It says "running" at once, in case the run dies.
                self.write(record)
            checkpoints = None
            if folder := self.files.checkpoint_dir:
                every = self.files.checkpoint_every or config.steps_of_whole()
                checkpoints = Checkpoints(folder, every, record, found and found.path)
            outcome = Outcome(record.losses, record.epochs)  # which a checkpoint's record shares
            given = chapter, devices.local, config, self.data, report
            Training(*given, checkpoints, found, stop, process, outcome).train(weights)
            process.any(stop.asked)  # no record is complete before all processes are done
            if first:
                self.finish(record, outcome)

    def record(self, weights: Weights, devices: list[str], process: Process) -> Record:
        config = self.config
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
            environment=dict(self.environment),
            versions=versions(("numpy", *package(framework).DISTRIBUTIONS)),
            source_sha256=source_digest(framework),
            devices=devices,
            config=config,
            data_sha256=self.data.digest(),
            initial_weights_sha256=digest(weights),
            cluster=cluster,
        )

    def hold(self, record: Record, stack: ExitStack) -> None:
        """Locks its folders for runs of this name, and clears them. Raises BusyError."""
        folders = self.files.folders()
        # One folder under two names must not be locked twice.
        for folder in {folder.resolve(): folder for folder in folders}.values():
            with write_failure(folder / name_of(record.config)):
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
        write_record(self.files.out / name_of(record.config), record, tensors)


def settle(
    settings: Mapping[str, Any], process: Process, command_line: Sequence[str], report: Reporter
) -> Run:
    """The run that all flags' settings ask for. Raises RequestError if there is none."""
    files, framework = Files.of(settings), settings["framework"]
    kind, devices = placed(framework, settings["device_kind"], settings["devices"], process.count)
    config = Config.of(settings, devices, kind)
    config.request.on_each(process)
    if process.rank == 0:  # it writes for all
        files.require_output_paths(name_of(config))
    if settings["init_weights"] and (note := bfloat16_note(settings["init_weights"])):
        report.notice(note)
    first = settings["train_examples"], settings["test_examples"]
    name = config.options.task.dataset or settings["dataset"]
    data = load(name, settings["data_dir"], report.notice, first)
    config = config.on_data(data.name, *data.sizes())
    data = data.first(config.train_examples, config.test_examples)
    variables = package(framework).ENVIRONMENT.given()
    return Run(config, files, data, settings["preset"], command_line, now(), variables)


def starting_weights(config: Config) -> Weights:
    """The weights in the file that is named, else those of the seed. Raises RequestError."""
    if config.init_weights:
        return load_weights(Path(config.init_weights), config.shapes(), config.dtype)
    return initial_weights(config.shapes(), config.seed, config.dtype)


def run(settings: Mapping[str, Any], command_line: Sequence[str]) -> None:
    """Trains, and writes the record. Raises RequestError or RunError."""
    framework, chapter = settings["framework"], settings["chapter"]
    process = Process(*launched(framework, chapter))
    report = Reporter(quiet=settings["quiet"] or process.rank > 0)
    made = settle(settings, process, command_line, report)
    config = made.config
    threads = cpu_threads(config, report)
    with marked(made) if process.rank == 0 else nullcontext():
        imported = import_backend(framework, chapter, threads, config.tf32)
        imported.launch(made, config.request, config.options)


@contextmanager
def marked(run: Run) -> Iterator[None]:
    """Marks the record if the run ends early: interrupted, or failed and why."""
    try:
        with variables_blamed(run.config.framework):
            yield
    except BaseException as error:
        stopped = isinstance(error, StoppedError | KeyboardInterrupt)
        failed = {"status": "failed", "failure": Failure.of(error)}
        with suppress(Exception):  # only what ended the run matters
            mark(run, {"status": "interrupted"} if stopped else failed)
        raise


def mark(run: Run, end: Mapping[str, Any]) -> None:
    """Updates the run's record, unless it is complete or marked already."""
    path = run.files.out / name_of(run.config)
    if read_record(path).started == run.started:
        # A process of this run may need a moment to release its lock.
        with held(path.parent, path.stem):
            record = read_record(path)
            if (record.started, record.status) == (run.started, "running"):
                run.write(record.model_copy(update=end))


def cpu_threads(config: Config, report: Reporter) -> int:
    """The number of threads for a framework; some may have one for each device only."""
    if config.devices == 1 or not package(config.framework).ONE_THREAD_EACH:
        return config.threads
    if config.threads // config.devices > 1:
        what = f"{config.framework} gets one thread for each CPU device"
        report.notice(f"{what}: with more it could hang")
    return 1
