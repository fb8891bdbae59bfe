"""The chapter from scratch: what its numbers do not show, and the book's examples."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from scratch_steps import LR, RATES, as_arrays, batches, start

from common.base.errors import RunError
from common.chapters.scratch import ScratchOptions


def trainer_of(scratch: Any, devices: Sequence[Any]) -> Any:
    return scratch.trainer(start("float32"), devices, ScratchOptions())


@pytest.mark.only("tensorflow")
def test_a_new_rate_needs_no_new_program(
    scratch: Any, listing: Any, all_devices: Sequence[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    traced = Mock(wraps=listing.sgd)  # called when a step is compiled
    monkeypatch.setattr(listing, "sgd", traced)
    trainer = trainer_of(scratch, all_devices[:1])
    for lr in RATES:
        trainer.train_batch(*batches(1, 8, "float32")[0], lr)
    assert traced.call_count == 1


def test_nothing_shares_memory_and_replicas_that_diverge_are_refused(
    scratch: Any, all_devices: Sequence[Any]
) -> None:
    weights, expected = start("float32"), start("float32")
    trainer = scratch.trainer(weights, all_devices[:3], ScratchOptions())
    exported, (X, y) = trainer.export(), batches(1, 9, "float32")[0]
    inputs = X.copy(), y.copy()
    replicas, alone = trainer.replicas, trainer_of(scratch, all_devices[1:2])
    alone.replicas[0] = replicas[1]
    alone.train_batch(X, y, LR)  # takes a step as if there were no other
    replicas[1] = alone.replicas[0]
    scratch.synchronize(replicas)
    np.testing.assert_equal((X, y, exported, weights), (*inputs, expected, expected))
    for name, values in weights.items():
        values += 1  # nor do replicas with the arrays that they came from
        first, changed, last = as_arrays([params[name] for params in replicas])
        assert np.array_equal(first, expected[name])
        assert np.array_equal(last, expected[name])
        assert not np.array_equal(changed, expected[name])
    with pytest.raises(RunError, match=r"conv1\.weight on device 1 differs"):
        trainer.export()


@pytest.mark.parametrize(("k", "rows"), [(2, [[0, 1], [2, 3]]), (4, [[0], [1], [2], [3]])])
def test_the_books_split(
    listing: Any, all_devices: Sequence[Any], k: int, rows: list[list[int]]
) -> None:
    X, y = np.arange(20, dtype=np.float32).reshape(4, 5), np.arange(4)
    X_shards, y_shards = listing.split_batch(X, y, all_devices[:k])
    assert [shard.tolist() for shard in as_arrays(X_shards)] == [X[r].tolist() for r in rows]
    assert [shard.tolist() for shard in as_arrays(y_shards)] == rows
