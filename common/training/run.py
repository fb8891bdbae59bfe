"""One run, from the flags to the record: what `python -m frameworks.X.Y` does."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from common.backends.devices import Process
from common.backends.interface import Chapter
from common.backends.loading import import_backend, one_thread_each
from common.backends.torchrun import first_speaks, place, require_suited
from common.base.arrays import Weights
from common.base.machine import now
from common.data.dataset import load
from common.models.weights_file import load_weights, shape_in
from common.settings.request import Request
from common.terminal.text import storable
from common.training.failure import mark_failed
from common.training.job import Job
from common.training.places import require_places
from common.training.reporter import Reporter
from common.training.resume import require_flags


def run(
    framework: str, chapter: str, flags: argparse.Namespace, command_line: Sequence[str]
) -> None:
    """Trains as the flags say and writes the record. Raises RequestError or RunError.

    What needs no framework is checked before one is imported.
    """
    request = Request.of(framework, chapter, flags)
    process = place() or Process()
    with first_speaks(process):
        require_suited(process, request.options.in_processes())
        report = Reporter(quiet=(quiet := request.quiet or process.rank > 0))
        request.with_preset(request.devices or 1, "cpu")
        require_flags(request)
        require_places(request)
        request, weights = given_weights(request)
        progress = sys.stderr.isatty() and not quiet
        data = load(request.dataset, request.data_dir, report.notice, progress=progress)
        data.first(request.train_examples, request.test_examples)
        job = Job(request, data, weights, [storable(each) for each in command_line], now())
        threads = cpu_threads(request, report)
        launch(import_backend(framework, chapter, threads), job, process.rank)


def launch(backend: Chapter[Any, Any, Any], job: Job, rank: int = 0) -> None:
    """Runs the job in every process that it needs; if it fails, the record says so."""
    try:
        backend.launch(job, job.request.wanted, job.request.options)
    except BaseException as error:
        if rank == 0:
            mark_failed(job, error)
        raise


def cpu_threads(request: Request, report: Reporter) -> int:
    """The threads that a framework is loaded with; some may have but one for each device."""
    alone = request.devices != 1 and one_thread_each(request.framework)
    threads = 1 if alone else request.threads
    if threads < request.threads // (request.devices or 2):
        report.notice(
            f"{request.framework} gets one thread for each CPU device: with more it could hang"
        )
    return threads


def given_weights(request: Request) -> tuple[Request, Weights | None]:
    """The weights of --init-weights, if any, and the request with what they decide."""
    if (path := request.init_weights) is None:
        return request, None
    options = request.options
    if None in asdict(options).values():
        options = options.filled(request.spec.of_weights(partial(shape_in, path)))
    weights = load_weights(path, options.shapes(), request.dtype)
    return replace(request, options=options), weights
