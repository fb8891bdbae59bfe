"""The minibatches, in an order that every framework shares."""

from collections.abc import Iterator

import numpy as np

from common.base.arrays import Array
from common.data.dataset import Bytes


def pixels(images: Bytes, dtype: str) -> Array:
    """Images (n, 28, 28) of bytes as (n, 1, 28, 28) of `dtype` in 0..1."""
    scaled: Array = images[:, np.newaxis].astype(dtype) / np.dtype(dtype).type(255)
    return scaled


def minibatches(
    images: Bytes,
    labels: Bytes,
    *,
    batch_size: int,
    seed: int,
    epoch: int,
    dtype: str,
    skip: int = 0,
) -> Iterator[tuple[Array, Array]]:
    """The minibatches of one epoch (counted from 0), but the first `skip`; the last may be short.

    `RandomState`, because its streams are frozen: every NumPy gives the same order. Images stay
    bytes until their minibatch is gathered.
    """
    order = np.random.RandomState([seed, epoch]).permutation(len(images))
    for start in range(skip * batch_size, len(order), batch_size):
        chosen = order[start : start + batch_size]
        yield pixels(images[chosen], dtype), labels[chosen].astype(np.int64)
