"""Weights that another framework saved give the same logits here, and its checkpoint resumes.

`nox -s tests` lets each framework leave a record, its weights and its checkpoints in the folder of
`--handover`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.backends.devices import DeviceRequest, Process
from common.backends.loading import backend
from common.base.arrays import Weights
from common.chapters.chapters import SPECS
from common.data.dataset import load
from common.data.minibatches import pixels
from common.models.initial import initial_weights
from common.models.weights_file import load_weights
from common.records.record import Record
from common.records.store import read_record, read_tensors
from common.records.trace import PROBE
from common.settings.arguments import all_settings
from common.training.checkpoints import Checkpoint, read_checkpoint
from common.training.loop import Training
from common.training.reporter import Reporter


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "handover" in metafunc.fixturenames:
        folder = metafunc.config.getoption("--handover")
        paths = sorted(Path(folder).glob("*-1dev.json")) if folder else []
        metafunc.parametrize("handover", paths, ids=lambda path: path.stem)


def logits_here(
    framework: str, record: Record, weights: Path, devices: Sequence[Any]
) -> "list[np.ndarray[Any, Any]]":
    """The logits of the probe batch with those weights, in the framework under test."""
    config, found = record.config, []
    chapter: Any = backend(framework, config.chapter)
    given = load_weights(weights, config.shapes(), config.dtype)
    data = load("synthetic", None, print, progress=False, first=(0, config.test_examples))

    options = SPECS[config.chapter].chosen(all_settings(framework, config.chapter, {}))

    def receive(process: Process) -> None:
        replicas = chapter.replicate(given, devices, options)
        probe = pixels(data.test_images[:PROBE], config.dtype)
        found.append(chapter.predict(probe, replicas, devices))

    chapter.launch(receive, DeviceRequest(len(devices), "cpu", 2), options)
    return found


def test_weights_of_every_framework_give_its_logits(
    handover: Path, framework: str, all_devices: Sequence[Any]
) -> None:
    record = read_record(handover)
    assert record.status == "complete"
    expected = read_tensors(handover, record)["logits/after"]
    weights = handover.with_name(f"{record.framework}-{record.chapter}.safetensors")
    (found,) = logits_here(framework, record, weights, all_devices[:1])
    assert np.abs(found - expected).max() < 1e-10 * np.abs(expected).max()
    assert np.abs(expected).max() > 1e-3


def finished_here(framework: str, found: Checkpoint, devices: Sequence[Any]) -> Weights:
    """The weights of a run that resumes from a checkpoint, in the framework under test."""
    theirs, ends = found.record.config, []
    chapter: Any = backend(framework, theirs.chapter)
    options: Any = SPECS[theirs.chapter].chosen(all_settings(framework, theirs.chapter, {}))
    if theirs.chapter == "concise":
        options = replace(options, width=theirs.settings()["width"])
    changed = {"framework": framework, "devices": len(devices), "options": options}
    config = theirs.model_copy(update=changed)
    first = config.train_examples, config.test_examples
    data = load("synthetic", None, print, progress=False, first=first)
    weights = initial_weights(config.shapes(), config.seed, config.dtype)

    def train(process: Process) -> None:
        quiet = Reporter(quiet=True)
        training = Training(chapter, devices, config, data, quiet, found=found)
        ends.append((training.train(weights), training.progress.losses))

    chapter.launch(train, DeviceRequest(len(devices), "cpu", 2), options)
    ((outcome, losses),) = ends
    assert losses[: len(found.record.losses)] == found.record.losses
    return outcome.tensors


def test_a_checkpoint_of_every_framework_resumes_to_its_weights(
    handover: Path, framework: str, all_devices: Sequence[Any]
) -> None:
    record = read_record(handover)
    found = read_checkpoint(handover.parent / "kept" / f"{handover.stem}-step2.json")
    assert len(record.losses) == 3
    expected = read_tensors(handover, record)
    k = 3 if record.chapter == "scratch" else 1  # which normalizes each device's shard for itself
    tensors = finished_here(framework, found, all_devices[:k])
    # The largest weight is 0.5; measured: 4e-15. A bias before a batch norm has no gradient at all.
    for name in (name for name in expected if name.startswith("weights/")):
        assert np.abs(tensors[name] - expected[name]).max() < 1e-12, name
