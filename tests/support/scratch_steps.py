"""Minibatches and weights for the chapter from scratch, and how far its results are apart."""

from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from common.base.arrays import Array, Weights
from common.compare.distances import distance
from common.data.minibatches import minibatches, numbers
from common.data.synthetic import synthetic
from common.models.initial import initial_weights
from common.models.nets import LENET

IMAGES, LABELS, *_ = synthetic(70, 1)


LR = 0.2
RATES = [LR * (1 - step / 6) for step in range(6)]
"""Of each step: a backend must not stay with the first."""


def batches(count: int, batch_size: int, dtype: str) -> list[tuple[Array, Array]]:
    """The first minibatches of the first epochs."""
    every = (
        minibatches(IMAGES, LABELS, batch_size=batch_size, seed=0, epoch=epoch)
        for epoch in range(count)
    )
    return [numbers(*batch, dtype) for batch in islice(chain.from_iterable(every), count)]


def start(dtype: str) -> Weights:
    """Initial weights larger than the book's, so that the first steps already train."""
    return {name: 8 * values for name, values in initial_weights(LENET, 3, dtype).items()}


def far(ours: Weights, theirs: Weights) -> float:
    """The worst distance over all tensors, relative to each tensor's largest entry."""
    assert ours.keys() == theirs.keys() >= LENET.keys()
    return max(distance(ours[name], theirs[name])[0] for name in theirs)


def as_arrays(tensors: Sequence[Any]) -> list[Array]:
    return [as_array(plain(tensor)) for tensor in tensors]


def as_array(tensor: Any) -> Array:
    """A copy in NumPy, taken in the framework's own way: NumPy's makes it warn of PyTorch's."""
    ways = (getattr(tensor, name, None) for name in ("asnumpy", "numpy"))
    own = next((way for way in ways if way is not None), None)
    return np.array(tensor if own is None else own())


def plain(tensor: Any) -> Any:
    """The tensor, out of reach of PyTorch's record of gradients."""
    return tensor.detach() if hasattr(tensor, "detach") else tensor


def place(listing: Any, devices: Sequence[Any], rows: Array) -> list[Any]:
    """One row on each device; it may be a number."""
    return [
        plain(listing.get_params({"x": np.array(row)}, device)["x"])
        for row, device in zip(rows, devices, strict=True)
    ]
