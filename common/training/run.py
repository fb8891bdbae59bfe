"""One run, from the flags to the record: what `python -m frameworks.X.Y` does."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Final

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

LAUNCHER_TIMEOUT: Final = 5
"""Seconds in which the first process ends: a launcher then ends the others."""


def run(settings: Mapping[str, Any], command_line: Sequence[str]) -> None:
    """Trains as settings say, those of all flags, and writes the record.

    What needs no framework is checked before one is imported. Raises RequestError or RunError.
    """
    framework, chapter = settings["framework"], settings["chapter"]
    here = launched(framework, settings)
    process, devices = here.process, settings["devices"]
    with first_speaks(process):
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
    # As soon as one has ended, a launcher asks the others to stop: that is not why they end.
    with stoppable(), marked(job) if process.rank == 0 else nullcontext():
        with_others(meeting, partial(launch, job, threads))


def launch(job: Job, threads: int, process: Process) -> None:
    """Runs the job in every process that it needs here, once all others are known."""
    framework, chapter, tf32 = (job.settings[k] for k in ("framework", "chapter", "tf32"))
    imported = import_backend(framework, chapter, threads, tf32)
    imported.launch(job, job.request.on_each(process), job.options, process)


@contextmanager
def marked(job: Job) -> Iterator[None]:
    """If the job ends early meanwhile, its record says so, and why it failed."""
    try:
        with variables_blamed(job.settings["framework"]):
            yield
    except BaseException as error:
        stopped = isinstance(error, StoppedError | KeyboardInterrupt)
        failed = {"status": "failed", "failure": Failure.of(error)}
        mark(job, {"status": "interrupted"} if stopped else failed)
        raise


def mark(job: Job, end: Mapping[str, Any]) -> None:
    """Changes the record that the run has left, unless that is complete or marked already."""
    framework, chapter = job.settings["framework"], job.settings["chapter"]
    for path in job.files.out.glob(record_name(framework, chapter, ANY, job.options.way())):
        with suppress(Exception):  # what ended the run is what matters
            if read_record(path).started == job.started:
                # A process of this run may need a moment to release its lock.
                with held(job.files.out, path.stem):
                    record = read_record(path)
                    if (record.started, record.status) == (job.started, "running"):
                        job.write(record.model_copy(update=end))


def alike(job: Job) -> dict[str, str]:
    """What all processes of a run have to be asked alike, by the name of the flag."""
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
def first_speaks(process: Process) -> Iterator[None]:
    """Of what all processes refuse alike, the first one says why; the others wait for its end.

    A launcher ends them then. If one is not ended, it has found something else, and says so.
    """
    try:
        yield
    except RequestError as error:
        if process.rank:
            try:
                time.sleep(LAUNCHER_TIMEOUT)
            except Terminated:  # that is the launcher: the run could not begin
                raise SystemExit(error.status) from None
        raise


def cpu_threads(settings: Mapping[str, Any], report: Reporter) -> int:
    """The threads that a framework is loaded with; some may have but one for each device."""
    framework, devices, asked = (settings[k] for k in ("framework", "devices", "threads"))
    threads: int = 1 if devices != 1 and package(framework).ONE_THREAD_EACH else asked
    if threads < asked // (devices or 2):
        report.notice(f"{framework} gets one thread for each CPU device: with more it could hang")
    return threads
