"""Weights that another framework saved give the same logits here.

`nox -s tests` lets each framework leave a record and its weights in the folder of `--handover`.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.backends.devices import DeviceRequest, Process
from common.data.dataset import load
from common.data.minibatches import pixels
from common.models.weights_file import load_weights
from common.records.contents import PROBE
from common.records.record import Record
from common.records.store import read_record, read_tensors
from common.settings.request import Request


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
    chapter: Any = import_module(f"frameworks.{framework}.{config.chapter}")
    given = load_weights(weights, config.shapes(), config.dtype)
    data = load("synthetic", None, print, progress=False).first(None, config.test_examples)

    options = Request.parsed(framework, config.chapter).options

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
