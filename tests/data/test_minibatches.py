"""The data set in memory, and the minibatches that are cut from it."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from common.base.errors import RequestError
from common.data.dataset import Dataset
from common.data.minibatches import minibatches, numbers, pixels

Bytes = NDArray[np.uint8]
DATA = Dataset(
    "fashion-mnist",
    np.arange(12 * 784, dtype=np.uint32).astype(np.uint8).reshape(12, 28, 28),
    np.arange(12, dtype=np.uint8) % 10,
    np.full((5, 28, 28), 7, np.uint8),
    np.arange(5, dtype=np.uint8),
)
sizes, seeds, epochs = st.integers(1, 200), st.integers(0, 2**32 - 1), st.integers(0, 50)


def numbered(count: int) -> tuple[Bytes, Bytes]:
    """Images and labels that all tell their own place."""
    labels = np.arange(count, dtype=np.uint8)
    return np.tile(labels[:, None, None], (1, 28, 28)), labels


@given(n=sizes, batch_size=sizes, seed=seeds, epoch=epochs)
def test_the_order_is_the_permutation_of_seed_and_epoch(
    n: int, batch_size: int, seed: int, epoch: int
) -> None:
    images, labels = numbered(n)
    batches = list(minibatches(images, labels, batch_size=batch_size, seed=seed, epoch=epoch))
    order = np.concatenate([y for _, y in batches])
    assert order.tolist() == np.random.RandomState([seed, epoch]).permutation(n).tolist()
    assert sorted(order) == list(range(n))
    assert [len(y) for _, y in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert len(batches[-1][1]) == (n % batch_size or batch_size)
    for X, y in batches:
        assert np.array_equal(X, np.broadcast_to(y[:, None, None], (len(y), 28, 28)))


def test_the_order_is_the_same_in_every_numpy() -> None:
    images, labels = numbered(8)
    (_, first), (_, last) = minibatches(images, labels, batch_size=5, seed=0, epoch=1)
    assert first.tolist() == [0, 5, 6, 1, 3]
    assert last.tolist() == [2, 4, 7]


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    images, labels = numbered(100)
    orders = {
        tuple(y)
        for seed in range(3)
        for epoch in range(3)
        for _, y in minibatches(images, labels, batch_size=100, seed=seed, epoch=epoch)
    }
    assert len(orders) == 9


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pixels_are_bytes_over_255_rounded_once(dtype: str) -> None:
    images = np.resize(np.arange(256, dtype=np.uint8), (2, 28, 28))
    X = pixels(images, dtype)
    assert X.shape == (2, 1, 28, 28)
    assert X.dtype == dtype
    assert (X.min(), X.max()) == (0, 1)
    assert np.array_equal(X[:, 0], (images / np.float64(255)).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_minibatches_have_the_types_of_the_interface(dtype: str) -> None:
    X, y = numbers(*numbered(3), dtype)
    assert (X.dtype, y.dtype) == (np.dtype(dtype), np.dtype(np.int64))


def test_images_stay_bytes_until_their_minibatch_is_gathered() -> None:
    images, labels = np.zeros((20_000, 28, 28), np.uint8), np.zeros(20_000, np.uint8)
    tracemalloc.start()
    next(minibatches(images, labels, batch_size=10, seed=0, epoch=0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < images.nbytes / 4


def test_the_first_examples_are_taken_in_their_order() -> None:
    first = DATA.first(7, 2)
    assert np.array_equal(first.train_images, DATA.train_images[:7])
    assert first.train_labels.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert np.array_equal(first.test_images, DATA.test_images[:2])
    assert first.test_labels.tolist() == [0, 1]
    assert first.name == DATA.name


def test_all_examples_are_taken_where_no_number_is_given() -> None:
    assert DATA.first(None, None).digest() == DATA.digest()
    assert DATA.first(12, 5).digest() == DATA.digest()


@pytest.mark.parametrize(
    ("train", "test", "complaint"),
    [
        (13, None, "--train-examples 13: fashion-mnist has only 12"),
        (1, 6, "--test-examples 6: fashion-mnist has only 5"),
    ],
)
def test_more_examples_than_there_are_is_an_error(
    train: int | None, test: int | None, complaint: str
) -> None:
    with pytest.raises(RequestError, match=complaint):
        DATA.first(train, test)


@pytest.mark.parametrize("part", ["train_images", "train_labels", "test_images", "test_labels"])
@given(place=st.integers(0, 2**32), change=st.integers(1, 255))
def test_the_digest_changes_with_any_byte(part: str, place: int, change: int) -> None:
    changed = getattr(DATA, part).copy()
    changed.flat[place % changed.size] ^= change
    assert replace(DATA, **{part: changed}).digest() != DATA.digest()


def test_the_digest_sees_shapes_and_not_how_the_memory_lies() -> None:
    images = DATA.test_images
    assert replace(DATA, test_images=images.reshape(5, 14, 56)).digest() != DATA.digest()
    assert replace(DATA, test_images=np.asfortranarray(images)).digest() == DATA.digest()
