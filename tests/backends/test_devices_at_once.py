"""PyTorch's CPU devices compute at the same time."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from common.backends.loading import backend
from common.models.initial import initial_weights
from common.models.nets import LENET

pytestmark = pytest.mark.only("pytorch")


@pytest.fixture
def torch() -> Iterator[Any]:
    """PyTorch, whose number of threads a test may change."""
    module = import_module("torch")
    before = module.get_num_threads()
    yield module
    module.set_num_threads(before)


def test_the_step_has_the_same_bits_as_one_device_after_the_other(torch: Any) -> None:
    chapter = backend("pytorch", "scratch")
    options = import_module("common.chapters.scratch").ScratchOptions(allreduce="star")
    devices = [torch.device("cpu", index) for index in range(2)]
    X = np.random.RandomState(0).rand(11, 1, 28, 28).astype(np.float32)
    found = []
    for threads in (1, 2):  # in both cases each device has one
        torch.set_num_threads(threads)
        trainer = chapter.trainer(initial_weights(LENET, 0, "float32"), devices, options)
        losses = [float(trainer.train_batch(X, np.arange(11) % 10, 0.1)) for _ in range(3)]
        weights = trainer.export()
        found.append((losses, {name: values.tobytes() for name, values in weights.items()}))
    assert found[0] == found[1]
