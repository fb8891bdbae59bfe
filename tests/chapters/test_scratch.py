"""The chapter from scratch, against NumPy and the book's examples."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from oracle import OneDevice
from scratch_steps import LR, RATES, as_arrays, batches, far, start

from common.base.errors import RunError
from common.chapters.scratch import ScratchOptions
from common.chapters.strategies import StrategiesOptions
from common.models.nets import LENET


def trainer_of(scratch: Any, devices: Sequence[Any], dtype: str = "float32") -> Any:
    return scratch.trainer(start(dtype), devices, ScratchOptions())


@pytest.mark.parametrize("k", [1, 3])
def test_float64_training_is_exact_and_goes_on_from_saved_replicas_and_from_those_of_numpy(
    scratch: Any, all_devices: Sequence[Any], k: int
) -> None:
    steps, devices = batches(4, 40, "float64"), all_devices[:k]
    assert [len(y) for _, y in steps] == [40, 30] * 2  # three devices share unevenly
    trainer, resumed, from_numpy = (trainer_of(scratch, devices, "float64") for _ in range(3))
    right = OneDevice("scratch", start("float64"))
    losses = [float(trainer.train_batch(*step, lr)) for step, lr in zip(steps, RATES, strict=True)]
    np.testing.assert_allclose(losses, right.steps(steps, RATES), rtol=1e-12)
    trained = trainer.export()
    assert {values.dtype for values in trained.values()} == {np.dtype("float64")}
    assert far(trained, right.weights) < 1e-12
    resumed.restore(trainer.save())
    from_numpy.restore(right.weights)
    right.step(*steps[0], LR)
    for each in (trainer, resumed, from_numpy):
        each.train_batch(*steps[0], LR)
    saved, restored = trainer.save(), resumed.save()
    assert all(saved[name].tobytes() == restored[name].tobytes() for name in LENET)
    assert far(from_numpy.save(), right.weights) < 1e-12


@pytest.mark.parametrize("name", ["scratch", "strategies"])
def test_a_large_gradient_is_not_clipped(
    name: str, request: pytest.FixtureRequest, all_devices: Sequence[Any]
) -> None:
    chapter, weights = request.getfixturevalue(name), start("float64")
    weights["fc2.weight"] = 1000 * weights["fc2.weight"]
    options = ScratchOptions() if name == "scratch" else StrategiesOptions("zero3")
    trainer, right = chapter.trainer(weights, all_devices[:3], options), OneDevice(name, weights)
    X, y = batches(1, 11, "float64")[0]
    assert sum((grad**2).sum() for grad in right.gradients(X, y).values()) > 100**2
    trainer.train_batch(X, y, LR)
    right.step(X, y, LR)
    assert far(trainer.export(), right.weights) < 1e-12


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


# Some frameworks have other code for float32, which fails on empty shards.
@pytest.mark.parametrize(
    ("k", "examples", "dtype", "limit"),
    [
        (1, 35, "float64", 1e-12),
        (3, 35, "float32", 2e-5),
        (5, 1, "float64", 1e-12),
        (5, 1, "float32", 2e-5),
        (5, 4, "float64", 1e-12),
    ],
)
def test_a_step_is_that_of_the_whole_minibatch_also_with_fewer_examples_than_devices(
    scratch: Any, all_devices: Sequence[Any], k: int, examples: int, dtype: str, limit: float
) -> None:
    trainer = trainer_of(scratch, all_devices[:k], dtype)
    batch = batches(1, examples, dtype)[0]
    # A full minibatch first: what it leaves behind must not count again.
    trainer.train_batch(*batches(1, 5, dtype)[0], LR)
    before = trainer.export()
    right = OneDevice("scratch", before)
    grads = trainer.gradients(*batch)
    assert {values.dtype for values in grads.values()} == {np.dtype(dtype)}
    assert far(grads, right.gradients(*batch)) < limit
    logits, expected = trainer.predict(batch[0]), right.logits(batch[0])
    assert (type(logits), logits.dtype) == (np.ndarray, np.dtype(dtype))
    atol = min(limit, 2e-6) * np.abs(expected).max()
    np.testing.assert_allclose(logits, expected, rtol=0, atol=atol)
    np.testing.assert_equal(trainer.export(), before)  # nothing was updated
    loss = trainer.train_batch(*batch, LR)
    assert float(loss) == pytest.approx(right.step(*batch, LR), rel=limit)
    assert far(trainer.export(), right.weights) < limit


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
