"""One run, from the flags to the record."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

from common.backends.devices import DeviceRequest, Process
from common.backends.loading import import_backend, package, variables_blamed
from common.base.errors import RequestError, StoppedError, Terminated
from common.base.locks import held
from common.base.machine import now
from common.base.signals import stoppable
from common.chapters.chapters import SPECS
from common.data.dataset import load
from common.hosts.launchers import launched
from common.hosts.supervise import Meeting, with_others
from common.models.weights_file import bfloat16_note
from common.records.fingerprint import source_digest, versions
from common.records.record import ANY, Failure, record_name
from common.records.store import read_record
from common.settings.config import Config
from common.training.checkpoints import Files
from common.training.job import Job
from common.training.reporter import Reporter


def run(settings: Mapping[str, Any], command_line: Sequence[str]) -> None:
    """Trains, and writes the record. Raises RequestError or RunError."""
    framework, chapter = settings["framework"], settings["chapter"]
    here = launched(framework, settings)
    process, devices = here.process, settings["devices"]
    with first_reports(process):
        DeviceRequest.of(settings).on_each(process)
        kind = "gpu" if settings["tf32"] and settings["device_kind"] != "cpu" else "cpu"
        Config.of(settings, 1 if devices is None else devices, kind)
        files = Files.of(settings)
        report = Reporter(quiet=files.quiet or process.rank > 0)
        if process.rank == 0:  # it writes for all
            way = SPECS[chapter].way(settings)
            record = record_name(framework, chapter, devices, way) if devices else ""
            files.require_output_paths(record)
        if settings["init_weights"] and (note := bfloat16_note(settings["init_weights"])):
            report.notice(note)
        first = settings["train_examples"], settings["test_examples"]
        data = load(settings["dataset"], settings["data_dir"], report.notice, first)
        variables = package(framework).ENVIRONMENT.given()
        job = Job(settings, files, data, [*command_line], now(), here.launcher, variables)
        threads = cpu_threads(settings, report)
    if process.count == 1:
        with marked(job):
            launch(job, threads, process)
        return
    meeting = Meeting(here, alike(job), report.notice, settings["join_timeout"])
    # When a process ends, a launcher stops the others: that is not why they end.
    with stoppable(), marked(job) if process.rank == 0 else nullcontext():
        with_others(meeting, partial(launch, job, threads))


def launch(job: Job, threads: int, process: Process) -> None:
    """Runs the job in every process that it needs on this host."""
    framework, chapter, tf32 = (job.settings[k] for k in ("framework", "chapter", "tf32"))
    imported = import_backend(framework, chapter, threads, tf32)
    imported.launch(job, job.request.on_each(process), job.options, process)


@contextmanager
def marked(job: Job) -> Iterator[None]:
    """Marks the record if the job ends early: interrupted, or failed and why."""
    try:
        with variables_blamed(job.settings["framework"]):
            yield
    except BaseException as error:
        stopped = isinstance(error, StoppedError | KeyboardInterrupt)
        failed = {"status": "failed", "failure": Failure.of(error)}
        mark(job, {"status": "interrupted"} if stopped else failed)
        raise


def mark(job: Job, end: Mapping[str, Any]) -> None:
    """Updates the run's record, unless it is complete or marked already."""
    framework, chapter = job.settings["framework"], job.settings["chapter"]
    for path in job.files.out.glob(record_name(framework, chapter, ANY, job.options.way())):
        with suppress(Exception):  # only what ended the run matters
            if read_record(path).started == job.started:
                # A process of this run may need a moment to release its lock.
                with held(job.files.out, path.stem):
                    record = read_record(path)
                    if (record.started, record.status) == (job.started, "running"):
                        job.write(record.model_copy(update=end))


def alike(job: Job) -> dict[str, str]:
    """What must be the same in all processes of a run, by flag."""
    local = ("out", "data_dir", "init_weights", "save_weights", "checkpoint_dir", "resume_from")
    means = ("threads", "quiet", "launcher", "coordinator", "host_rank", "join_timeout")
    names, framework = job.settings.keys() - {*local, *means}, job.settings["framework"]
    return {
        **{f"--{name.replace('_', '-')}": str(job.settings[name]) for name in sorted(names)},
        "--checkpoint-dir": "given" if job.files.checkpoint_dir else "not given",
        "variables that may change rounding": str(job.environment or "none"),
        "the project's code": source_digest(framework)[:12],
        **versions(("numpy", *package(framework).DISTRIBUTIONS)),
    }


@contextmanager
def first_reports(process: Process) -> Iterator[None]:
    """Lets only the first process report an error that all raise."""
    try:
        yield
    except RequestError as error:
        if process.rank:
            try:
                time.sleep(5)
            except Terminated:  # by the launcher
                raise SystemExit(error.status) from None
        raise


def cpu_threads(settings: Mapping[str, Any], report: Reporter) -> int:
    """The number of threads for a framework; some may have one for each device only."""
    framework, devices, threads = (settings[k] for k in ("framework", "devices", "threads"))
    if devices == 1 or not package(framework).ONE_THREAD_EACH:
        return int(threads)
    if threads // (devices or 2) > 1:
        report.notice(f"{framework} gets one thread for each CPU device: with more it could hang")
    return 1
