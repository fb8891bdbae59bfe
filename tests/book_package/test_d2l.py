"""The chapter from scratch against the pieces of it that the book's package, `d2l`, has.

Every step starts from the same weights: on several devices here, on the whole minibatch there.
The package leaves LeNet and allreduce to the text of the section.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import book
import pytest
from scratch_steps import LR, batches, far, start

from common.base.arrays import Weights
from common.chapters.scratch import ScratchOptions

X, Y = batches(1, 36, "float64")[0]


@pytest.fixture(scope="module", params=[1, 5])
def stepped(scratch: Any, all_devices: Sequence[Any], request: pytest.FixtureRequest) -> Weights:
    """The weights after one step of the chapter, on some number of devices."""
    devices = all_devices[: request.param]
    replicas = scratch.replicate(start("float64"), devices, ScratchOptions())
    scratch.train_batch(X, Y, replicas, devices, LR, ScratchOptions())
    weights: Weights = scratch.export(replicas)
    return weights


@pytest.fixture
def params(scratch: Any, all_devices: Sequence[Any]) -> Any:
    """The weights before the step, on the first device."""
    return scratch.listing.get_params(start("float64"), all_devices[0])


@pytest.mark.only("pytorch")
def test_a_step_is_that_of_sgd_in_pytorch(
    d2l: Any, scratch: Any, params: Any, stepped: Weights
) -> None:
    torch: Any = import_module("torch")
    y_hat = scratch.listing.lenet(torch.as_tensor(X), params)
    d2l.Classifier().loss(y_hat, torch.as_tensor(Y), averaged=False).sum().backward()
    d2l.sgd(params.values(), LR, len(X))
    assert far(stepped, scratch.export([params])) < 1e-12


@pytest.mark.only("tensorflow")
def test_a_step_is_that_of_sgd_in_tensorflow(
    d2l: Any, scratch: Any, params: Any, stepped: Weights
) -> None:
    tf: Any = import_module("tensorflow")
    with book.keras_in_float64(), tf.GradientTape() as tape:
        # In an object, Keras 3 would hide this function behind what `compile` was given.
        mean_loss = d2l.Classifier.loss(None, scratch.listing.lenet(X, params), Y)
    grads = tape.gradient(mean_loss, params)
    d2l.sgd(params.values(), grads.values(), LR, 1)
    assert far(stepped, scratch.export([params])) < 1e-12


@pytest.mark.only("jax")
def test_a_step_is_that_of_sgd_in_jax(
    d2l: Any, scratch: Any, params: Any, stepped: Weights
) -> None:
    jax: Any = import_module("jax")
    optax: Any = import_module("optax")

    def mean_loss(params: Any) -> Any:
        y_hat = scratch.listing.lenet(X, params)
        return optax.softmax_cross_entropy_with_integer_labels(y_hat, Y).mean()

    updates, _ = d2l.SGD(LR).update(jax.grad(mean_loss)(params), None)
    assert far(stepped, scratch.export([optax.apply_updates(params, updates)])) < 1e-12


@pytest.mark.only("mxnet")
def test_a_step_is_that_of_split_batch_and_sgd_in_mxnet(
    d2l: Any, scratch: Any, all_devices: Sequence[Any], stepped: Weights
) -> None:
    mx: Any = import_module("mxnet")
    replicas = scratch.replicate(start("float64"), all_devices[:3], ScratchOptions())
    shards = d2l.split_batch(mx.np.array(X, X.dtype), mx.np.array(Y, Y.dtype), all_devices[:3])
    with mx.autograd.record():
        losses = [
            d2l.Classifier().loss(scratch.listing.lenet(X_shard, params), y_shard, averaged=False)
            for X_shard, y_shard, params in zip(*shards, replicas, strict=True)
        ]
    mx.autograd.backward(losses)
    for name in stepped:
        total = sum(params[name].grad.asnumpy() for params in replicas)
        for params in replicas:
            params[name].grad[:] = mx.np.array(total, total.dtype)
    for params in replicas:
        d2l.sgd(params.values(), LR, len(X))
    assert far(stepped, scratch.export(replicas)) < 1e-12
