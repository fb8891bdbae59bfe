"""Minibatches of a data set, in the order of a seed and an epoch."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st

from common.data.dataset import minibatches, numbers

sizes, seeds, epochs = st.integers(1, 200), st.integers(0, 2**32 - 1), st.integers(0, 50)


@given(n=sizes, batch_size=sizes, seed=seeds, epoch=epochs, skip=st.integers(0, 3))
def test_the_order_is_the_permutation_of_seed_and_epoch(
    n: int, batch_size: int, seed: int, epoch: int, skip: int
) -> None:
    labels = np.arange(n, dtype=np.uint8)
    images = np.tile(labels[:, None, None], (1, 28, 28))  # each tells its own place
    how = {"batch_size": batch_size, "seed": seed, "epoch": epoch}
    batches = list(minibatches(images, labels, **how))
    order = np.concatenate([y for _, y in batches])
    assert order.tolist() == np.random.RandomState([seed, epoch]).permutation(n).tolist()
    assert [len(y) for _, y in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert len(batches[-1][1]) == (n % batch_size or batch_size)
    for X, y in batches:
        assert np.array_equal(X, np.broadcast_to(y[:, None, None], (len(y), 28, 28)))
    rest = [y.tolist() for _, y in minibatches(images, labels, **how, skip=skip)]
    assert rest == [y.tolist() for _, y in batches[skip:]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pixels_are_bytes_over_255_rounded_once(dtype: str) -> None:
    images = np.resize(np.arange(256, dtype=np.uint8), (2, 28, 28))
    X, y = numbers(images, np.arange(2, dtype=np.uint8), dtype)
    assert (X.shape, X.dtype, y.dtype) == ((2, 1, 28, 28), np.dtype(dtype), np.dtype(np.int64))
    assert np.array_equal(X[:, 0], (images / np.float64(255)).astype(dtype))


def test_images_stay_bytes_until_their_minibatch_is_gathered() -> None:
    images, labels = np.zeros((20_000, 28, 28), np.uint8), np.zeros(20_000, np.uint8)
    tracemalloc.start()
    next(minibatches(images, labels, batch_size=10, seed=0, epoch=0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < images.nbytes / 4
