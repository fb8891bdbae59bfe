"""One run, from the flags to the record: what `python -m frameworks.X.Y` does."""

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.config import Config, check_batch, take_examples, with_preset
from common.data import Dataset, load
from common.errors import RequestError
from common.files import require_writable
from common.interface import Chapter, Weights
from common.machine import describe_machine, native_errors_held_back, now, peak_memory
from common.progress import Reporter
from common.record import ROOT, DataUsed, Record, source_digest, versions, write_record
from common.training import Outcome, Training
from common.weights import SHAPES, digest, lenet_weights, load_weights, save_weights


def run(
    framework: str, chapter: str, flags: argparse.Namespace, command_line: Sequence[str]
) -> None:
    """Trains as the flags say and writes the record. Raises RequestError or RunError.

    Everything that can be checked without the framework is checked before it is imported.
    """
    report = Reporter(quiet=flags.quiet)
    arguments = with_preset(chapter, flags)
    require_places(arguments)
    weights = initial_weights(chapter, arguments)
    progress = sys.stderr.isatty() and not flags.quiet
    loaded = load(arguments.dataset, arguments.data_dir, report.notice, progress=progress)
    data = take_examples(chapter, arguments, loaded)
    backend = import_backend(framework, chapter, arguments.threads)
    devices = backend.devices(arguments.devices, arguments.device_kind, arguments.threads)
    config = configure(framework, chapter, arguments, data, len(devices))
    report.notice(introduction(config, flags.preset, devices))
    record = new_record(config, data, weights, devices, command_line)
    outcome = recorded(Training(backend, devices, config, data, report), weights, record, flags.out)
    if arguments.save_weights is not None:
        save_weights(arguments.save_weights, trained_weights(outcome))
    print(closing_line(outcome, record.devices))


def require_places(arguments: argparse.Namespace) -> None:
    """Raises RequestError if what the run leaves could not be written in the end."""
    require_writable(arguments.out)
    if arguments.save_weights is not None:
        if arguments.save_weights.is_dir():
            raise RequestError(f"--save-weights {arguments.save_weights} is a folder: name a file")
        require_writable(arguments.save_weights.parent)


def initial_weights(chapter: str, arguments: argparse.Namespace) -> Weights:
    """The weights to start from: those of the file that was named, else freshly drawn ones."""
    if arguments.init_weights is not None:
        return load_weights(arguments.init_weights, SHAPES[chapter], arguments.dtype)
    return lenet_weights(arguments.seed, arguments.dtype)


def import_backend(framework: str, chapter: str, threads: int) -> Chapter[Any, Any]:
    """The module of one chapter in one framework. Raises RequestError if it is not installed."""
    # Read once, when a framework loads its OpenMP runtime.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    # Threads that spin while they wait cost a step dearly as soon as anything else runs.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        with native_errors_held_back():
            module: Any = importlib.import_module(f"frameworks.{framework}.{chapter}")
    except ImportError as error:
        raise RequestError(
            f"{framework} cannot be imported here ({error}): `nox -s {framework}` installs it"
        ) from None
    backend: Chapter[Any, Any] = module
    return backend


def configure(
    framework: str, chapter: str, arguments: argparse.Namespace, data: Dataset, devices: int
) -> Config:
    """The configuration, now that data and devices are known. Raises RequestError."""
    check_batch(arguments.batch_size, devices)
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
    why = " (auto: the book's own setting; --preset quick is shorter)" if preset == "auto" else ""
    length = f"{config.epochs} epochs" if config.steps is None else f"{config.steps} steps"
    return (
        f"{config.framework} {config.chapter}, preset {config.preset}{why}: {length} of "
        f"{config.train_examples:,} {config.dataset} images, batch {config.batch_size}, "
        f"lr {config.lr:g}, {config.dtype}, on {names(devices)}"
    )


def new_record(
    config: Config,
    data: Dataset,
    weights: Weights,
    devices: Sequence[Any],
    command_line: Sequence[str] = (),
) -> Record:
    """The record of a run that is about to start."""
    package = importlib.import_module(f"frameworks.{config.framework}")
    return Record(
        framework=config.framework,
        chapter=config.chapter,
        status="running",
        command=["python", "-m", f"frameworks.{config.framework}.{config.chapter}", *command_line],
        started=now(),
        machine=describe_machine(),
        versions=versions(("numpy", *package.DISTRIBUTIONS)),
        source_sha256=source_digest(config.framework),
        devices=[str(device) for device in devices],
        config=config,
        data=DataUsed(
            name=data.name,
            sha256=data.digest(),
            train_examples=config.train_examples,
            test_examples=config.test_examples,
        ),
        initial_weights_sha256=digest(weights),
    )


def recorded(training: Training, weights: Weights, record: Record, out: Path) -> Outcome:
    """Trains, and keeps the record true all along: running, then complete or failed.

    So that an earlier record is not taken for this run's, should it die.
    """
    write_record(out, record)
    try:
        outcome = training.run(weights)
    except BaseException:
        failure = traceback.format_exc().replace(str(ROOT), ".").replace(sys.prefix, "...")
        write_record(out, record.model_copy(update={"status": "failed", "failure": failure}))
        raise
    complete = {
        "status": "complete",
        "losses": outcome.losses,
        "epochs": outcome.epochs,
        "peak_memory": peak_memory(),
    }
    write_record(out, record.model_copy(update=complete), outcome.tensors)
    return outcome


def trained_weights(outcome: Outcome) -> Weights:
    """The final weights, by their canonical names alone."""
    prefix = "weights/"
    return {
        name.removeprefix(prefix): values
        for name, values in outcome.tensors.items()
        if name.startswith(prefix)
    }


def closing_line(outcome: Outcome, devices: Sequence[str]) -> str:
    """The book's closing line."""
    last = outcome.epochs[-1]
    seconds = sum(epoch.seconds for epoch in outcome.epochs) / len(outcome.epochs)
    return f"test acc: {last.test_accuracy:.2f}, {seconds:.1f} sec/epoch on {names(devices)}"


def names(devices: Sequence[Any]) -> str:
    """The devices as the book prints them."""
    return f"[{', '.join(str(device) for device in devices)}]"
