"""Minibatches and weights of LeNet for tests of backends, and the error of their results."""

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

from common.base.arrays import Array, Weights, on_host
from common.compare.distances import distance
from common.data.dataset import minibatches, numbers
from common.data.synthetic import synthetic
from common.models.nets import LENET, Shapes
from common.models.weights_file import initial_weights

IMAGES, LABELS, *_ = synthetic(70, 1)

LR = 0.2
MOST_DEVICES = 5
"""The largest number of simulated devices that a test takes."""
RATES = [LR * (1 - step / 4) for step in range(4)]
"""The learning rate of each step: a backend must not keep the first."""


def batches(count: int, batch_size: int, dtype: str) -> list[tuple[Array, Array]]:
    """The first minibatches of the first epochs."""
    epochs = (
        minibatches(IMAGES, LABELS, batch_size=batch_size, seed=0, epoch=epoch)
        for epoch in range(count)
    )
    return [numbers(*batch, dtype) for batch in islice(chain.from_iterable(epochs), count)]


def start(dtype: str, shapes: Shapes = LENET) -> Weights:
    """Initial weights larger than the book's, so that the first steps already train."""
    return {name: 8 * values for name, values in initial_weights(shapes, 3, dtype).items()}


def far(ours: Weights, theirs: Weights) -> float:
    """The worst distance over all tensors, relative to each tensor's largest entry."""
    assert ours.keys() == theirs.keys() >= LENET.keys()
    return max(distance(ours[name], theirs[name])[0] for name in theirs)


def as_arrays(tensors: Sequence[Any]) -> list[Array]:
    return [on_host(tensor) for tensor in tensors]
