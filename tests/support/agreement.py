"""Folders of records in which four frameworks agree, and functions that spoil them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import numpy as np

from common.backends.frameworks import FRAMEWORKS, WRAPPERS
from common.base.arrays import Weights
from common.base.machine import now
from common.chapters.spec import spec
from common.chapters.suites import Suite
from common.compare.comparison import SuiteResult, compare, verdict_on
from common.compare.findings import Verdict
from common.compare.folder import alike, load
from common.compare.peers import LoadedRecord, LoadedSuite, Steps
from common.compare.recorded_steps import Recomputed, recompute_all
from common.compare.runs import RecordedRun
from common.data.dataset import Dataset
from common.data.synthetic import synthetic
from common.models.weights_file import initial_weights
from common.pairs.runs import read_run
from common.records.record import name_of, read_record, read_tensors, write_record
from common.settings.config import Config
from common.training.checkpoints import Files
from common.training.run import Run, marked

DATA = Dataset("synthetic", *synthetic(40, 300))
SETTINGS: dict[str, Any] = {
    "chapter": "scratch",
    "device_kind": "cpu",
    "threads": 1,
    "preset": "book",
    "batch_size": 10,
    "lr": 0.05,
    "epochs": None,
    "steps": 4,
    "seed": 0,
    "dtype": "float64",
    "allreduce": "star",
    "dataset": "synthetic",
    "train_examples": 40,
    "test_examples": 10,
    "init_weights": "eight times the book's",
}
CONCISE: dict[str, Any] = {"chapter": "concise", "width": 1, "batch_size": 5, "steps": 2}
ROUNDED = {**CONCISE, "width": 2, "batch_norm": "sync", "dtype": "float32"}


def nowhere_zero(*args: Any) -> Weights:
    """Initial weights of which small steps are rounded away."""
    return {name: values + np.float32(0.01) for name, values in initial_weights(*args).items()}


def config_of(settings: Mapping[str, Any]) -> Config:
    """The configuration with these settings, the chapter's own options among them."""
    kind = spec(settings["chapter"]).options
    names = {option.name for option in fields(kind)} & settings.keys()
    rest = {name: value for name, value in settings.items() if name not in names}
    return Config(**rest, options=kind(**{name: settings[name] for name in names}))


def make(
    folder: Path,
    framework: str,
    backend: Any,
    devices: int,
    start: Any = initial_weights,
    data: Any = DATA,
    **settings: Any,
) -> Path:
    """The record of a run of `backend`, a chapter, under a framework's name."""
    settings = {**SETTINGS, **settings, "framework": framework, "devices": devices}
    if settings["chapter"] == "concise":
        settings = {"wrapper": WRAPPERS[framework][0], **settings}
    if settings["chapter"] != "scratch":
        del settings["allreduce"]
    config = config_of(settings)
    weights = start(config.shapes(), config.seed, config.dtype)
    if config.init_weights:  # so that the first steps already train
        weights = {k: values if "bn" in k else 8 * values for k, values in weights.items()}
    flags = [f"--devices={devices}", f"--out={folder}", "--quiet"]
    folder.mkdir(exist_ok=True)
    data = data.first(config.train_examples, config.test_examples)
    run = Run(config, Files(folder, quiet=True), data, "auto", flags, now(), {})
    # The chapter need be no module.
    loaded = patch("common.training.run.backend", lambda *_: backend)
    with loaded, patch("common.training.run.starting_weights", lambda _: weights), marked(run):
        backend.launch(run, config.request, config.options)
    return folder / name_of(config)


def make_runs(
    folder: Path, backend: Any, *frameworks: str, dtype: str = "float64", **settings: Any
) -> None:
    """Records of ResNet-18 on 1 and 2 devices, by default synchronized and with their layers."""
    chosen = {**CONCISE, "batch_norm": "sync", "dtype": dtype, "layers": True, **settings}
    for framework, devices in product(frameworks or FRAMEWORKS, (1, 2)):
        make(folder / f"{dtype}-{chosen['batch_norm']}", framework, backend, devices, **chosen)


def trained(framework: str, backend: Any, devices: int, **settings: Any) -> RecordedRun:
    """A run in memory."""
    with TemporaryDirectory() as folder:
        return read_run(make(Path(folder), framework, backend, devices, **settings))


def changed(
    run: RecordedRun, arrays: Mapping[str, Any] | None = None, **fields: Any
) -> RecordedRun:
    """A run in memory, with other arrays or other fields of its record."""
    record = run.record.model_copy(update={"sha256": uuid4().hex, **fields})
    losses = {"losses": np.array(record.losses)}
    return RecordedRun(record, {**run.arrays, **losses, **(arrays or {})})


def of_suite(*runs: RecordedRun) -> LoadedSuite:
    """Runs in memory as those of a suite."""
    suite = Suite(runs[0].record.chapter, "own", "own", (1,), (), {})
    found = [LoadedRecord(run.record.framework, run.devices, run) for run in runs]
    return LoadedSuite(suite, alike(found))


def compared(*loaded: LoadedSuite) -> list[SuiteResult]:
    """The results of suites, with NumPy's steps."""
    return compare(loaded, steps_of(run for each in loaded for run in each.runs))


def verdict(*runs: RecordedRun) -> Verdict:
    """The verdict on runs in memory, as those of one suite."""
    return verdict_on(compared(of_suite(*runs)))


def judge(folder: Path, **chosen: Any) -> Verdict:
    """The verdict on the records in a folder."""
    return verdict_on(compared(*load(folder, **chosen)))


COMPUTED: dict[str, Recomputed | None] = {}


def steps_of(runs: Iterable[RecordedRun]) -> Steps:
    """NumPy's steps of runs: those of a record are computed once."""
    keys = {run: f"{run.record.sha256} {run.limits}" for run in runs if run.comparable}
    new = {key: run for run, key in keys.items() if key not in COMPUTED}
    computed = recompute_all([*new.values()])
    COMPUTED.update({key: computed[run] for key, run in new.items()})
    return {run: COMPUTED[key] for run, key in keys.items()}


def failed(verdict: Verdict) -> set[tuple[str, str, int]]:
    """Which checks failed, for which framework, on how many devices."""
    assert verdict.passed == (not verdict.failures)
    return {(check.check, check.framework, check.devices) for check in verdict.failures}


def edit(path: Path, **changes: Any) -> None:
    """Changes fields of a record as if its run had written them."""
    tensors = read_tensors(path, read_record(path))
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    write_record(path, read_record(path), tensors)


def rewrite(path: Path, tensors: Weights, **changes: Any) -> None:
    """Changes tensors and fields of a record as if its run had written them."""
    record = read_record(path)
    tensors = {**read_tensors(path, record), **tensors}
    write_record(path, record.model_copy(update=changes), tensors)
