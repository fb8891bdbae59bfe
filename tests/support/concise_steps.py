"""Minibatches, weights and options of a narrow ResNet-18 for tests of backends."""

from typing import Final

import numpy as np

from common.backends.frameworks import WRAPPERS
from common.base.arrays import Array, Weights
from common.chapters.concise import ConciseOptions
from common.compare.distances import distance
from common.data.dataset import pixels
from common.data.synthetic import synthetic
from common.models.nets import resnet18_shapes
from common.models.weights_file import initial_weights

WIDTH: Final = 4
IMAGES, LABELS, *_ = synthetic(20, 1)


def batches(dtype: str) -> list[tuple[Array, Array]]:
    """Three minibatches, uneven on three devices; one of them idles in the second.

    With synchronized statistics no ReLU unit has an input nearer to zero than 7e-7 of the largest
    input of its layer. Rounding to float32 would decide on nearer ones.
    """
    return [
        (pixels(IMAGES[a:b], dtype), LABELS[a:b].astype(np.int64))
        for a, b in ((0, 10), (11, 13), (10, 20))
    ]


def start(dtype: str, width: int = WIDTH) -> Weights:
    """Weights and running statistics without a 0 or a 1, so that each has an effect."""
    random = np.random.RandomState(1)
    weights = {}
    for name, values in initial_weights(resnet18_shapes(width), 0, "float64").items():
        noise = random.standard_normal(values.shape)
        changed = 10 * values if values.ndim > 1 else values + 0.1 * noise
        changed = np.abs(changed) if name.endswith("running_var") else changed
        weights[name] = changed.astype(np.float32).astype(dtype)
    return weights


def options(
    framework: str, batch_norm: str = "per-device", wrapper: str | None = None
) -> ConciseOptions:
    """The options of a run; without a wrapper, the framework's first."""
    return ConciseOptions(WIDTH, batch_norm, wrapper or WRAPPERS[framework][0])


def far(result: Array, expected: Array) -> float:
    """The largest difference over the largest expected entry."""
    assert result.shape == expected.shape
    return distance(result, expected)[0]
