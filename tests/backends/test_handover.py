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
from common.models.initial import initial_weights
from common.models.weights_file import load_weights
from common.records.store import read_record, read_tensors
from common.settings.arguments import all_settings
from common.settings.config import Config
from common.training.checkpoints import Checkpoint, read_checkpoint
from common.training.loop import Training
from common.training.reporter import Reporter


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "handover" in metafunc.fixturenames:
        folder = metafunc.config.getoption("--handover")
        paths = sorted(Path(folder).glob("*-1dev.json")) if folder else []
        metafunc.parametrize("handover", paths, ids=lambda path: path.stem)


def trained_here(
    framework: str,
    theirs: Config,
    devices: Sequence[Any],
    weights: Weights,
    found: Checkpoint | None = None,
) -> Weights:
    """The tensors of another framework's run, from its weights or a checkpoint, in this one."""
    chapter: Any = backend(framework, theirs.chapter)
    options: Any = SPECS[theirs.chapter].chosen(all_settings(framework, theirs.chapter, {}))
    if theirs.chapter == "concise":
        options = replace(options, width=theirs.settings()["width"])
    changed = {"framework": framework, "devices": len(devices), "options": options}
    config, ends = theirs.model_copy(update=changed), []
    first = config.train_examples, config.test_examples
    data = load("synthetic", None, print, progress=False, first=first)

    def train(process: Process) -> None:
        quiet = Reporter(quiet=True)
        training = Training(chapter, devices, config, data, quiet, found=found)
        ends.append(training.train(weights).tensors)

    chapter.launch(train, DeviceRequest(len(devices), "cpu", 2), options)
    (tensors,) = ends
    return tensors


def test_weights_and_checkpoint_of_every_framework_are_taken(
    handover: Path, framework: str, all_devices: Sequence[Any]
) -> None:
    record = read_record(handover)
    config, expected = record.config, read_tensors(handover, record)
    path = handover.with_name(f"{record.framework}-{record.chapter}.safetensors")
    weights = load_weights(path, config.shapes(), config.dtype)
    logits = trained_here(framework, config, all_devices[:1], weights)["logits/before"]
    scale = np.abs(expected["logits/after"]).max()
    assert scale > 1e-3
    assert np.abs(logits - expected["logits/after"]).max() < 1e-10 * scale
    found = read_checkpoint(handover.parent / "kept" / f"{handover.stem}-step2.json")
    k = 3 if record.chapter == "scratch" else 1  # which normalizes each device's shard for itself
    weights = initial_weights(config.shapes(), config.seed, config.dtype)
    tensors = trained_here(framework, config, all_devices[:k], weights, found)
    # The largest weight is 0.5; measured: 4e-15. A bias before a batch norm has no gradient at all.
    for name in (name for name in expected if name.startswith("weights/")):
        assert np.abs(tensors[name] - expected[name]).max() < 1e-12, name
