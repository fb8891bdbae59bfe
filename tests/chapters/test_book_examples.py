"""The pieces of the chapter, on the examples that the book prints and on larger ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scratch_steps import as_arrays, place


def test_the_books_allreduce(listing: Any, all_devices: Sequence[Any]) -> None:
    data = place(listing, all_devices[:2], np.array([[1.0, 1.0], [2.0, 2.0]], np.float32))
    assert [array.tolist() for array in as_arrays(listing.allreduce(data))] == [[3, 3]] * 2


def test_allreduce_sums_what_differs_on_every_device(
    listing: Any, all_devices: Sequence[Any]
) -> None:
    rows = np.random.RandomState(3).standard_normal((3, 7))
    sums = as_arrays(listing.allreduce(place(listing, all_devices[:3], rows)))
    assert len(sums) == 3
    for each in sums:
        np.testing.assert_allclose(each, rows.sum(axis=0), rtol=1e-14, atol=1e-15)
        assert np.array_equal(each, sums[0])


@pytest.mark.parametrize(("k", "rows"), [(2, [[0, 1], [2, 3]]), (4, [[0], [1], [2], [3]])])
def test_the_books_split(
    listing: Any, all_devices: Sequence[Any], k: int, rows: list[list[int]]
) -> None:
    X, y = np.arange(20, dtype=np.float32).reshape(4, 5), np.arange(4)
    X_shards, y_shards = listing.split_batch(X, y, all_devices[:k])
    assert [shard.tolist() for shard in as_arrays(X_shards)] == [X[r].tolist() for r in rows]
    assert [shard.tolist() for shard in as_arrays(y_shards)] == rows


def test_loss_is_the_cross_entropy_of_each_example(
    listing: Any, all_devices: Sequence[Any]
) -> None:
    logits = np.random.RandomState(0).standard_normal((4, 10))
    (y_hat,), (y,) = listing.split_batch(logits, np.array([3, 0, 9, 3]), all_devices[:1])
    expected = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(4), [3, 0, 9, 3]]
    (losses,) = as_arrays([listing.loss(y_hat, y)])
    np.testing.assert_allclose(losses, expected, rtol=1e-13)
