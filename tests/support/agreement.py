"""Folders of records in which four frameworks agree, and ways to spoil them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.backends.frameworks import WRAPPERS
from common.base.arrays import Weights
from common.base.errors import RunError
from common.compare.findings import Check
from common.compare.suite import Verdict
from common.data.dataset import Dataset
from common.data.synthetic import synthetic
from common.models.nets import initial_weights, shapes_of
from common.records.new import new_record
from common.records.store import read_record, read_tensors, seal, write_record
from common.settings.config import Config
from common.training.job import Job
from common.training.run import launch

DATA = Dataset("synthetic", *synthetic(40, 100))
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


@dataclass(frozen=True)
class JobOf(Job):
    """A job of a chapter that is no module."""

    backend: Any

    def chapter(self) -> Any:
        return self.backend


def make(folder: Path, framework: str, backend: Any, devices: int, **settings: Any) -> Path:
    """The record of a run of `backend`, a chapter, under a framework's name."""
    if settings.get("chapter") == "concise":
        settings = {"wrapper": WRAPPERS[framework][0], **settings}
    config = Config(framework=framework, devices=devices, **{**SETTINGS, **settings})
    names = backend.devices(devices, "cpu", 1)
    weights = initial_weights(shapes_of(config.chapter, config.width), config.seed, config.dtype)
    if config.init_weights:  # so that the first steps already train
        weights = {k: values if "bn" in k else 8 * values for k, values in weights.items()}
    data = DATA.first(config.train_examples, config.test_examples)
    record = new_record(config, data, weights, names)
    folder.mkdir(exist_ok=True)
    job = JobOf(names, config, data, weights, record, folder, None, "", quiet=True, backend=backend)
    launch(backend, job)
    return folder / record.file_name()


def failed(verdict: Verdict) -> set[tuple[str, str, int]]:
    """Which checks failed, for which framework, on how many devices."""
    assert verdict.passed == (not failures(verdict))
    return {(check.check, check.framework, check.devices) for check in failures(verdict)}


def failures(verdict: Verdict) -> list[Check]:
    return [c for comparison in verdict.comparisons for c in comparison.checks if not c.passed]


def edit(path: Path, **changes: Any) -> None:
    """Changes fields of a record, its tensors as they are, and seals it again if it can."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    reseal(path)


def reseal(path: Path) -> bool:
    """Seals a record again that was changed; returns whether it is one."""
    try:
        record = read_record(path)
    except RunError:
        return False
    sealed = record.model_copy(update={"sha256": seal(record)})
    path.write_text(sealed.model_dump_json(by_alias=True))
    return True


def answer(path: Path, *accuracies: float) -> None:
    """Changes what a run has predicted, and so its accuracy after each of its epochs."""
    record = read_record(path)
    labels = read_tensors(path, record)["test/labels"]
    predictions = np.stack([labels] * len(accuracies))
    for row, accuracy in zip(predictions, accuracies, strict=True):
        row[round(accuracy * len(labels)) :] += 1
    figures = zip(record.epochs, accuracies, strict=True)
    epochs = [each.model_copy(update={"test_accuracy": accuracy}) for each, accuracy in figures]
    changed = record.model_copy(update={"epochs": epochs})
    tensors = {**read_tensors(path, record), "test/predictions": predictions}
    write_record(path.parent, changed, tensors)


def rewrite(path: Path, tensors: Weights) -> None:
    """Writes a record anew with changed tensors, and vouches for them."""
    record = read_record(path)
    write_record(path.parent, record, {**read_tensors(path, record), **tensors})
