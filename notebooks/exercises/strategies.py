"""Solutions of the exercises on strategies, for every framework."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from common.base.arrays import Array, Weights
from common.chapters.strategies import StrategiesOptions
from common.trainers.strategies import BySplitting


def gradient_on_mesh(
    chapter: BySplitting,
    weights: Mapping[str, Array],
    minibatch: tuple[Array, Array],
    devices: Sequence[Any],
    sizes: Sequence[int],
) -> Weights:
    """The gradient of a minibatch on a mesh; `sizes` has the number of examples of each row.

    Each row is tensor-parallel and returns the mean over its examples, weighted by their number.
    """
    X, y = minibatch
    length = len(devices) // len(sizes)
    options = StrategiesOptions("tensor", microbatches=1)
    total: Weights = {name: 0 * values for name, values in weights.items()}
    for row, (start, stop) in enumerate(pairwise(accumulate(sizes, initial=0))):
        group = devices[row * length : (row + 1) * length]
        trainer = chapter.trainer(weights, group, options)
        grads = trainer.gradients(X[start:stop], y[start:stop])
        for name, grad in grads.items():
            total[name] = total[name] + (stop - start) / len(y) * grad
    return total
