"""Our chapters compute what the book's package, `d2l`, computes, in float64.

Of LeNet's section the package has the loss and the SGD step, for each framework; of the concise
section, the net is compared in PyTorch. `nox -s d2l` makes environments that have the package.
"""

import random
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from unittest.mock import MagicMock, patch

import concise_steps
import numpy as np
import pytest
import scratch_steps
from scratch_steps import LR, far

from common.backends.frameworks import FRAMEWORKS
from common.backends.interface import DeviceRequest, Process
from common.base.arrays import Weights
from common.chapters.scratch import ScratchOptions
from common.compare.distances import distance
from common.models.nets import BLOCKS, STAGES, trainable

ABSENT = (
    *("IPython", "PIL", "matplotlib", "matplotlib_inline", "pandas", "scipy", "scipy.spatial"),
    *("tensorflow", "tensorflow_datasets", "torchvision"),
)
"""Packages that `d2l` imports and no test calls."""

X, Y = scratch_steps.batches(1, 36, "float64")[0]
IMAGES, LABELS = (values[:4] for values in concise_steps.batches("float64")[0])

RENAMED = {
    "^conv1": "0",
    "^bn1": "1",
    "^fc": "fc.1",
    **{rf"^stage{s}\.block{b}": f"resnet_block{s}.{b - 1}" for s in STAGES for b in BLOCKS},
}
"""Patterns in our names of parameters, with the package's names."""


@pytest.fixture(scope="module")
def d2l(framework: str, all_devices: Sequence[Any]) -> Any:
    """The package's module for the framework."""
    missing = {name: MagicMock() for name in ABSENT if find_spec(name.partition(".")[0]) is None}
    # JAX's module draws a seed up to 1e6, a float, which Python 3.12 refuses.
    with patch.dict(sys.modules, missing), patch.object(random, "randint", lambda low, high: 0):
        return import_module(f"d2l.{'torch' if framework == 'pytorch' else framework}")


def step_in_pytorch(d2l: Any, scratch: Any, params: Any) -> Any:
    torch: Any = import_module("torch")
    y_hat = scratch.listing.lenet(torch.as_tensor(X), params)
    d2l.Classifier().loss(y_hat, torch.as_tensor(Y), averaged=False).sum().backward()
    d2l.sgd(params.values(), LR, len(X))
    return params


def step_in_tensorflow(d2l: Any, scratch: Any, params: Any) -> Any:
    tf: Any = import_module("tensorflow")
    tf.keras.config.set_floatx("float64")
    with tf.GradientTape() as tape:
        # In an object, Keras 3 would replace this function by the loss of `compile`.
        mean_loss = d2l.Classifier.loss(None, scratch.listing.lenet(X, params), Y)
    d2l.sgd(params.values(), tape.gradient(mean_loss, params).values(), LR, 1)
    return params


def step_in_jax(d2l: Any, scratch: Any, params: Any) -> Any:
    jax: Any = import_module("jax")
    optax: Any = import_module("optax")

    def mean_loss(params: Any) -> Any:
        y_hat = scratch.listing.lenet(X, params)
        return optax.softmax_cross_entropy_with_integer_labels(y_hat, Y).mean()

    updates, _ = d2l.SGD(LR).update(jax.grad(mean_loss)(params), None)
    return optax.apply_updates(params, updates)


def step_in_mxnet(d2l: Any, scratch: Any, params: Any) -> Any:
    mx: Any = import_module("mxnet")
    images, labels = mx.np.array(X, X.dtype), mx.np.array(Y, Y.dtype)
    with mx.autograd.record():
        losses = d2l.Classifier().loss(
            scratch.listing.lenet(images, params), labels, averaged=False
        )
    losses.backward()
    d2l.sgd(params.values(), LR, len(X))
    return params


STEPS = (step_in_pytorch, step_in_tensorflow, step_in_jax, step_in_mxnet)


@pytest.mark.parametrize("devices", [1, 5])
def test_a_step_on_any_number_of_devices_is_the_package_s_on_the_whole_minibatch(
    framework: str, d2l: Any, scratch: Any, all_devices: Sequence[Any], devices: int
) -> None:
    start = scratch_steps.start("float64")
    chosen = all_devices[:devices]
    options = ScratchOptions()
    trainer = scratch.trainer(start, chosen, options)
    trainer.train_batch(X, Y, LR)
    params = scratch.listing.get_params(start, chosen[0])
    expected = STEPS[FRAMEWORKS.index(framework)](d2l, scratch, params)
    assert far(trainer.export(), scratch.export([expected])) < 1e-12


def renamed(name: str) -> str:
    """The package's name of a parameter."""
    for pattern, replacement in RENAMED.items():
        name = re.sub(pattern, replacement, name)
    return name


@pytest.mark.only("pytorch")
def test_logits_and_gradients_are_those_of_the_package_s_resnet18(
    d2l: Any, concise: Any, all_devices: Sequence[Any]
) -> None:
    torch: Any = import_module("torch")
    layouts: Any = import_module("frameworks.pytorch.layouts")
    weights = concise_steps.start("float64", 64)  # the package's width
    weights = {k: 0.3 * values if values.ndim > 1 else values for k, values in weights.items()}
    theirs, options = d2l.resnet18(10).double(), concise_steps.options("pytorch")
    state = {k: torch.from_numpy(layouts.from_canonical(k, v)) for k, v in weights.items()}
    theirs.load_state_dict({renamed(k): v for k, v in state.items()}, strict=False)
    results: Weights = {}

    def computed(net: Any, name_of: Callable[[str], str]) -> Weights:
        evaluated = net.eval()(torch.as_tensor(IMAGES)).detach().numpy()
        y_hat = net.train()(torch.as_tensor(IMAGES))
        torch.nn.functional.cross_entropy(y_hat, torch.as_tensor(LABELS)).backward()
        params = dict(net.named_parameters())
        grads = {k: params[name_of(k)].grad.numpy() for k in weights if trainable(k)}
        logits = {"evaluation": evaluated, "training": y_hat.detach().numpy()}
        return logits | {k: layouts.to_canonical(k, grad) for k, grad in grads.items()}

    def ours(process: Process) -> None:
        replicas = concise.trainer(weights, all_devices[:1], options).replicas
        results.update(computed(replicas.net.module, str))

    concise.launch(ours, DeviceRequest(1, "cpu", 2), options)
    expected = computed(theirs, renamed)
    for mode in ("evaluation", "training"):
        assert concise_steps.far(results.pop(mode), expected.pop(mode)) < 1e-11
    # Biases whose true gradient is 0 have no measure of their own.
    largest = max(np.abs(grad).max() for grad in expected.values())
    for name, grad in expected.items():
        assert distance(results[name], grad, largest)[0] < 1e-11
