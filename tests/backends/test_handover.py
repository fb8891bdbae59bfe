"""Another framework's weights give the same logits, and its checkpoint resumes.

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
from common.backends.frameworks import FRAMEWORKS
from common.backends.loading import backend
from common.base.arrays import Weights, part
from common.chapters.chapters import spec
from common.data.dataset import load
from common.models.weights_file import load_weights
from common.records.store import read_record, read_tensors
from common.settings.arguments import all_settings
from common.training.checkpoints import read_checkpoint
from common.training.loop import Training
from common.training.reporter import Reporter


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The files of the framework before this one; before the first is the last."""
    if "handover" in metafunc.fixturenames:
        option = metafunc.config.getoption
        framework, folder = option("--framework"), Path(option("--handover") or "nowhere")
        names = [each for each in FRAMEWORKS if any(folder.glob(f"{each}-*"))]
        before = names[names.index(framework) - 1] if framework in names else "none"
        paths = sorted(folder.glob(f"{before}-*-1dev.json"))
        metafunc.parametrize("handover", paths, ids=lambda path: path.stem)


def test_weights_and_checkpoint_of_another_framework_are_taken(
    handover: Path, framework: str, all_devices: Sequence[Any]
) -> None:
    record = read_record(handover)
    theirs, expected = record.config, read_tensors(handover, record)
    name = theirs.chapter
    path = handover.with_name(f"{record.framework}-{name}.safetensors")
    weights = load_weights(path, theirs.shapes(), theirs.dtype)
    found = read_checkpoint(handover.parent / "kept" / f"{handover.stem}-step2.json")
    chapter: Any = backend(framework, name)
    options: Any = spec(name).chosen(all_settings(framework, name, {}))
    if name == "concise":
        options = replace(options, width=theirs.settings()["width"])
    # The concise chapter normalizes each device's shard for itself.
    devices = all_devices[: 3 if name == "scratch" else 1]
    changed = {"framework": framework, "devices": len(devices), "options": options}
    config, ends = theirs.model_copy(update=changed), list[Weights]()
    data = load("synthetic", None, print)
    data = data.first(config.train_examples, config.test_examples)

    def train(process: Process) -> None:
        quiet = Reporter(quiet=True)
        # Its first logits are those of the weights; then it takes the checkpoint.
        training = Training(chapter, devices, config, data, quiet, found=found)
        ends.append(training.train(weights).tensors)

    chapter.launch(train, DeviceRequest(len(devices), "cpu", 2), options)
    (tensors,) = ends
    right, scale = expected["logits/after"], np.abs(expected["logits/after"]).max()
    assert scale > 1e-3
    assert np.abs(tensors["logits/before"] - right).max() < 1e-10 * scale
    # The largest weight is 0.5; measured: 4e-15. A bias before a batch norm has no gradient.
    for array in part(expected, "weights/"):
        off = tensors[f"weights/{array}"] - expected[f"weights/{array}"]
        assert np.abs(off).max() < 1e-12, array
