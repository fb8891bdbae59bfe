"""The float32 suites of ResNet-18 are set so that at first rounding decides no ReLU unit."""

import numpy as np
import pytest
from resnet_judge import Array, Layer, ResNet18

from common.chapters.chapters import SUITES
from common.chapters.concise import BATCH_NORMS
from common.chapters.suites import Suite
from common.data.minibatches import minibatches, pixels
from common.data.synthetic import synthetic
from common.models.initial import initial_weights
from common.models.nets import resnet18_shapes
from common.parallel.shards import shard_bounds

NAMES = [f"float32-{batch_norm}" for batch_norm in BATCH_NORMS]
MARGIN = 9e-6  # the inputs are of the size of 1, and float32 has seven digits


class Margins(ResNet18):
    """Notes how near to zero the inputs of its ReLU units come."""

    closest = np.inf

    def relu(self, X: Array) -> Layer:
        self.closest = min(self.closest, float(np.abs(X).min()))
        return super().relu(X)


@pytest.mark.parametrize("suite", [suite for suite in SUITES if suite.name in NAMES], ids=NAMES)
def test_no_unit_is_in_doubt(suite: Suite) -> None:
    width, batch_size, seed, n = (
        int(suite.settings[key]) for key in ("width", "batch_size", "seed", "train_examples")
    )
    images, labels, *_ = synthetic(first=(n, 0))
    order = {"batch_size": batch_size, "seed": seed, "epoch": 0}
    X = pixels(next(minibatches(images, labels, **order))[0], "float64")
    weights = initial_weights(resnet18_shapes(width), seed, "float64")
    every_count = (*suite.devices, *suite.more_devices)
    for k in every_count if suite.settings["batch_norm"] == "per-device" else (1,):
        net = Margins(weights, shard_bounds(len(X), k))
        net.forward(X)
        assert net.closest > MARGIN
