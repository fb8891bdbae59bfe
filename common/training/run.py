"""One run, from the flags to the record."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from common.backends.devices import DeviceRequest, Process
from common.backends.launched import launched
from common.backends.loading import import_backend, package, variables_blamed
from common.base.errors import StoppedError
from common.base.locks import held
from common.base.machine import now
from common.chapters.chapters import spec
from common.data.dataset import load
from common.models.weights_file import bfloat16_note
from common.records.record import ANY, Failure, record_name
from common.records.store import read_record
from common.settings.config import Config
from common.training.checkpoints import Files
from common.training.job import Job
from common.training.reporter import Reporter


def run(settings: Mapping[str, Any], command_line: Sequence[str]) -> None:
    """Trains, and writes the record. Raises RequestError or RunError."""
    framework, chapter, devices = (settings[k] for k in ("framework", "chapter", "devices"))
    rank, count = launched(framework, chapter)
    DeviceRequest.of(settings).on_each(Process(rank, count))
    kind = "gpu" if settings["tf32"] and settings["device_kind"] != "cpu" else "cpu"
    Config.of(settings, 1 if devices is None else devices, kind)
    files = Files.of(settings)
    report = Reporter(quiet=files.quiet or rank > 0)
    if rank == 0:  # it writes for all
        way = spec(chapter).way(settings)
        record = record_name(framework, chapter, devices, way) if devices else ""
        files.require_output_paths(record)
    if settings["init_weights"] and (note := bfloat16_note(settings["init_weights"])):
        report.notice(note)
    first = settings["train_examples"], settings["test_examples"]
    data = load(settings["dataset"], settings["data_dir"], report.notice, first)
    variables = package(framework).ENVIRONMENT.given()
    job = Job(settings, files, data, [*command_line], now(), variables)
    threads = cpu_threads(settings, report)
    with marked(job) if rank == 0 else nullcontext():
        imported = import_backend(framework, chapter, threads, settings["tf32"])
        imported.launch(job, job.request, job.options)


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


def cpu_threads(settings: Mapping[str, Any], report: Reporter) -> int:
    """The number of threads for a framework; some may have one for each device only."""
    framework, devices, threads = (settings[k] for k in ("framework", "devices", "threads"))
    if devices == 1 or not package(framework).ONE_THREAD_EACH:
        return int(threads)
    if threads // (devices or 2) > 1:
        report.notice(f"{framework} gets one thread for each CPU device: with more it could hang")
    return 1
