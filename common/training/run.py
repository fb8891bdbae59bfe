"""One run, from the flags to the record: what `python -m frameworks.X.Y` does."""

import argparse
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from common.backends.interface import Chapter
from common.backends.loading import import_backend, one_thread_each
from common.backends.torchrun import require_suited
from common.base.arrays import Weights
from common.base.errors import RequestError
from common.base.files import require_apart, require_file, require_writable
from common.data.dataset import Dataset, load
from common.models.nets import initial_weights, shapes_of
from common.models.weights_file import load_weights, shape_in
from common.records.fingerprint import ROOT
from common.records.new import new_record
from common.records.record import record_name
from common.settings.config import Config, preset_name, take_examples, with_preset
from common.settings.estimate import book_hours
from common.training.job import Job, names
from common.training.reporter import Reporter


def run(
    framework: str, chapter: str, flags: argparse.Namespace, command_line: Sequence[str]
) -> None:
    """Trains as the flags say and writes the record. Raises RequestError or RunError.

    What needs no framework is checked before one is imported.
    """
    # Of the processes that torchrun starts with the same command, the first speaks for all.
    rank = require_suited(getattr(flags, "wrapper", None))
    report = Reporter(quiet=(quiet := flags.quiet or rank > 0))
    with_preset(chapter, flags, preset_name(chapter, flags), flags.devices or 1)
    require_places(flags, framework, chapter, flags.devices)
    given = given_weights(chapter, flags)
    progress = sys.stderr.isatty() and not quiet
    data = load(flags.dataset, flags.data_dir, report.notice, progress=progress)
    data.first(flags.train_examples, flags.test_examples)
    threads = 1 if flags.devices != 1 and one_thread_each(framework) else flags.threads
    if threads < flags.threads // (flags.devices or 2):
        report.notice(f"{framework} gets one thread for each CPU device: with more it could hang")
    backend = import_backend(framework, chapter, threads)
    devices = backend.devices(flags.devices, flags.device_kind, flags.threads)
    require_places(flags, framework, chapter, len(devices))
    preset = preset_name(chapter, flags, devices)
    arguments = with_preset(chapter, flags, preset, len(devices))
    data = take_examples(chapter, arguments, data)
    config = configure(framework, chapter, arguments, data, len(devices))
    weights = given or initial_weights(shapes_of(chapter, config.width), config.seed, config.dtype)
    job = Job(
        devices=devices,
        config=config,
        data=data,
        weights=weights,
        record=new_record(config, data, weights, devices, command_line),
        out=flags.out,
        save_weights=flags.save_weights,
        introduction=introduction(config, flags.preset, devices),
        quiet=flags.quiet,
    )
    launch(backend, job, rank)


def launch(backend: Chapter[Any, Any], job: Job, rank: int = 0) -> None:
    """Runs the job in as many processes as its wrapper needs; if it fails, the record says so.

    A request that only the framework can refuse leaves everything as it was.
    """
    try:
        backend.launch(job, len(job.devices), **job.config.options())
    except RequestError:
        raise
    except BaseException:
        trace = traceback.format_exc().replace(str(ROOT), ".").replace(sys.prefix, "...")
        if rank == 0:
            job.mark_failed(trace)
        raise


def require_places(
    flags: argparse.Namespace, framework: str, chapter: str, devices: int | None
) -> None:
    """Raises RequestError if what the run leaves could not be written in the end.

    The number of devices, which the names of the record have, may not be known yet.
    """
    require_writable(flags.out)
    record = flags.out / record_name(framework, chapter, devices or 0)
    beside = record.with_suffix(".safetensors")
    written = {"the record": record, "its file of tensors": beside} if devices else {}
    for path in written.values():
        require_file(path, "--out")
    if flags.save_weights is not None:
        require_file(flags.save_weights, "--save-weights")
        written["--save-weights"] = flags.save_weights
    require_apart(written)


def given_weights(chapter: str, flags: argparse.Namespace) -> Weights | None:
    """The weights of --init-weights, if any; they set the width that no flag has set."""
    if flags.init_weights is None:
        return None
    if chapter == "concise" and flags.width is None:
        flags.width = (*shape_in(flags.init_weights, "conv1.bias"), 1)[0]
    shapes = shapes_of(chapter, getattr(flags, "width", None))
    return load_weights(flags.init_weights, shapes, flags.dtype)


def configure(
    framework: str, chapter: str, arguments: argparse.Namespace, data: Dataset, devices: int
) -> Config:
    """The configuration, now that preset, data and devices are known."""
    settled: dict[str, Any] = {
        "framework": framework,
        "chapter": chapter,
        "devices": devices,
        "dataset": data.name,
        "train_examples": len(data.train_labels),
        "test_examples": len(data.test_labels),
        "init_weights": arguments.init_weights and str(arguments.init_weights),
    }
    flags = {key: value for key, value in vars(arguments).items() if key in Config.model_fields}
    return Config(**flags | settled)


def introduction(config: Config, preset: str, devices: Sequence[Any]) -> str:
    """What is about to happen, in a line."""
    length = f"{config.epochs} epochs" if config.steps is None else f"{config.steps} steps"
    net = f"width {config.width}, batch norm {config.batch_norm}, " if config.width else ""
    reason = f" (auto: {why(config)})" if preset == "auto" else ""
    return (
        f"{config.framework} {config.chapter}, preset {config.preset}{reason}: {net}{length} of "
        f"{config.train_examples:,} {config.dataset} images, batch {config.batch_size}, "
        f"{config.rates()}, {config.dtype}, on {names(devices)}"
    )


def why(config: Config) -> str:
    """Why `auto` chose this preset."""
    if config.preset == "book":
        return "the book's own setting; --preset quick is shorter"
    return f"without a GPU the book's own, --preset book, takes about {book_hours():.0f} hours"
