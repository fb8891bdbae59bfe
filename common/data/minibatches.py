"""The minibatches, in the same order in every framework."""

from collections.abc import Iterator

import numpy as np

from common.base.arrays import Array
from common.data.dataset import Bytes

Batch = tuple[Bytes, Bytes]
"""Images (n, 28, 28) and labels (n,), as bytes."""


def pixels(images: Bytes, dtype: str) -> Array:
    """Images (n, 28, 28) of bytes as (n, 1, 28, 28) of `dtype` in 0..1."""
    scaled: Array = images[:, np.newaxis].astype(dtype) / np.dtype(dtype).type(255)
    return scaled


def numbers(images: Bytes, labels: Bytes, dtype: str) -> tuple[Array, Array]:
    """A minibatch for training: pixels (n, 1, 28, 28) in 0..1 and 64-bit labels (n,)."""
    return pixels(images, dtype), labels.astype(np.int64)


def minibatches(
    images: Bytes, labels: Bytes, batch_size: int, *, seed: int, epoch: int, skip: int = 0
) -> Iterator[Batch]:
    """The minibatches of an epoch, counted from 0, but the first `skip`; the last may be short.

    The streams of `RandomState` are frozen: every NumPy gives the same order.
    """
    order = np.random.RandomState([seed, epoch]).permutation(len(images))
    for start in range(skip * batch_size, len(order), batch_size):
        chosen = order[start : start + batch_size]
        yield images[chosen], labels[chosen]
