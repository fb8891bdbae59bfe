"""The chapter from scratch, in the framework under test, against NumPy."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import numpy as np
import oracle
import pytest
from scratch_steps import LR, RATES, as_arrays, batches, far, start

from common.base.arrays import Array, Weights
from common.base.errors import RunError
from common.chapters.scratch import ScratchOptions
from common.models.nets import LENET


@pytest.fixture(scope="module")
def judged() -> tuple[list[float], Weights]:
    """The losses of three epochs, and the weights after them, as NumPy computes them."""
    return oracle.sgd("scratch", start("float64"), batches(6, 40, "float64"), RATES)


@pytest.mark.parametrize("k", [1, 3])
def test_float64_training_is_exact(
    scratch: Any, all_devices: Sequence[Any], judged: tuple[list[float], Weights], k: int
) -> None:
    steps = batches(6, 40, "float64")  # three epochs; three devices share unevenly
    assert [len(y) for _, y in steps] == [40, 30] * 3
    expected_losses, expected = judged
    replicas = scratch.replicate(start("float64"), all_devices[:k], ScratchOptions())
    losses = [
        scratch.train_batch(X, y, replicas, all_devices[:k], lr, ScratchOptions())
        for (X, y), lr in zip(steps, RATES, strict=True)
    ]
    scratch.synchronize(replicas)
    np.testing.assert_allclose([float(loss) for loss in losses], expected_losses, rtol=1e-12)
    trained = scratch.export(replicas)
    assert {values.dtype for values in trained.values()} == {np.dtype("float64")}
    assert far(trained, expected) < 1e-12


@pytest.mark.only("tensorflow")
def test_a_new_rate_needs_no_new_program(
    scratch: Any, listing: Any, all_devices: Sequence[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    traced = Mock(wraps=listing.sgd)  # called while a step is compiled, never when one is taken
    monkeypatch.setattr(listing, "sgd", traced)
    replicas = scratch.replicate(start("float32"), all_devices[:1], ScratchOptions())
    for lr in RATES:
        scratch.train_batch(
            *batches(1, 8, "float32")[0], replicas, all_devices[:1], lr, ScratchOptions()
        )
    assert traced.call_count == 1


@pytest.mark.parametrize(("k", "dtype", "limit"), [(1, "float64", 1e-12), (3, "float32", 2e-5)])
def test_gradient_is_that_of_the_whole_minibatch(
    scratch: Any, all_devices: Sequence[Any], k: int, dtype: str, limit: float
) -> None:
    X, y = batches(1, 35, dtype)[0]
    replicas = scratch.replicate(start(dtype), all_devices[:k], ScratchOptions())
    found = scratch.gradients(X, y, replicas, all_devices[:k], ScratchOptions())
    X = X.astype(np.float64)
    _, expected, _ = oracle.loss_and_gradients("scratch", X, y, start("float64"))
    assert {values.dtype for values in found.values()} == {np.dtype(dtype)}
    assert far(found, expected) < limit
    np.testing.assert_equal(scratch.export(replicas), start(dtype))  # nothing was updated


# In both dtypes: some frameworks have other code for float32, which minds empty shards.
@pytest.mark.parametrize(
    ("examples", "dtype", "limit"),
    [(1, "float64", 1e-12), (1, "float32", 2e-5), (4, "float64", 1e-12)],
)
def test_fewer_examples_than_devices_are_all_used(
    scratch: Any, all_devices: Sequence[Any], examples: int, dtype: str, limit: float
) -> None:
    devices = all_devices[:5]
    X, y = batches(1, examples, dtype)[0]
    replicas = scratch.replicate(start(dtype), devices, ScratchOptions())
    # A full minibatch first: what it leaves behind must not count again.
    scratch.train_batch(*batches(1, 5, dtype)[0], replicas, devices, LR, ScratchOptions())
    weights = {name: values.astype(np.float64) for name, values in scratch.export(replicas).items()}
    right = oracle.loss_and_gradients("scratch", X.astype(np.float64), y, weights)
    loss, expected, _ = right
    assert far(scratch.gradients(X, y, replicas, devices, ScratchOptions()), expected) < limit
    found = float(scratch.train_batch(X, y, replicas, devices, LR, ScratchOptions()))
    assert found == pytest.approx(loss, rel=limit)
    expected_weights = {name: weights[name] - LR * expected[name] for name in weights}
    assert far(scratch.export(replicas), expected_weights) < limit


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(
    ("examples", "dtype", "limit"), [(1, "float64", 1e-12), (7, "float32", 2e-6)]
)
def test_predict_gives_every_example_its_logits(
    scratch: Any, all_devices: Sequence[Any], k: int, examples: int, dtype: str, limit: float
) -> None:
    X, _ = batches(1, examples, dtype)[0]
    replicas = scratch.replicate(start(dtype), all_devices[:k], ScratchOptions())
    logits = scratch.predict(X, replicas, all_devices[:k])
    expected = oracle.logits("scratch", X.astype(np.float64), start("float64"))
    assert isinstance(logits, np.ndarray)
    assert logits.dtype == np.dtype(dtype)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=limit * np.abs(expected).max())


def train_alone(
    scratch: Any, replicas: list[Any], devices: Sequence[Any], device: int, X: Array, y: Array
) -> None:
    """Takes one step on one replica, as if there were no other."""
    alone = [replicas[device]]
    scratch.train_batch(X, y, alone, [devices[device]], LR, ScratchOptions())
    replicas[device] = alone[0]


def test_replicas_share_no_memory(scratch: Any, all_devices: Sequence[Any]) -> None:
    weights, expected = start("float32"), start("float32")
    replicas = scratch.replicate(weights, all_devices[:3], ScratchOptions())
    X, y = batches(1, 8, "float32")[0]
    train_alone(scratch, replicas, all_devices, 1, X, y)
    for name, values in weights.items():
        values += 1  # nor do they with the arrays that they came from
        first, changed, last = as_arrays([params[name] for params in replicas])
        assert np.array_equal(first, expected[name])
        assert np.array_equal(last, expected[name])
        assert not np.array_equal(changed, expected[name])


def test_exported_weights_stay_as_they_are(scratch: Any, all_devices: Sequence[Any]) -> None:
    replicas = scratch.replicate(start("float32"), all_devices[:2], ScratchOptions())
    exported = scratch.export(replicas)
    scratch.train_batch(
        *batches(1, 8, "float32")[0], replicas, all_devices[:2], LR, ScratchOptions()
    )
    scratch.synchronize(replicas)
    assert all(np.array_equal(exported[k], values) for k, values in start("float32").items())


def test_export_refuses_replicas_that_part(scratch: Any, all_devices: Sequence[Any]) -> None:
    replicas = scratch.replicate(start("float32"), all_devices[:2], ScratchOptions())
    X, y = batches(1, 8, "float32")[0]
    train_alone(scratch, replicas, all_devices, 1, X, y)
    with pytest.raises(RunError, match=r"conv1\.weight on device 1 differs"):
        scratch.export(replicas)


def test_restored_replicas_train_as_those_that_were_saved(
    scratch: Any, all_devices: Sequence[Any]
) -> None:
    devices, (first, second) = all_devices[:3], batches(2, 8, "float32")
    ours, theirs = (scratch.replicate(start("float32"), devices, ScratchOptions()) for _ in "ab")
    scratch.train_batch(*first, ours, devices, LR, ScratchOptions())
    scratch.restore(scratch.save(ours), theirs, devices)
    for replicas in (ours, theirs):
        scratch.train_batch(*second, replicas, devices, LR, ScratchOptions())
    saved, restored = scratch.save(ours), scratch.save(theirs)
    assert all(saved[name].tobytes() == restored[name].tobytes() for name in LENET)


def test_training_leaves_its_inputs_alone(scratch: Any, all_devices: Sequence[Any]) -> None:
    weights, (X, y) = start("float32"), batches(1, 9, "float32")[0]
    before = X.copy(), y.copy(), {name: values.copy() for name, values in weights.items()}
    replicas = scratch.replicate(weights, all_devices[:2], ScratchOptions())
    scratch.train_batch(X, y, replicas, all_devices[:2], LR, ScratchOptions())
    scratch.synchronize(replicas)
    assert np.array_equal(X, before[0])
    assert np.array_equal(y, before[1])
    assert all(np.array_equal(weights[name], before[2][name]) for name in weights)
