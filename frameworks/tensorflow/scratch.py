"""LeNet on several devices from scratch, in TensorFlow.

python -m frameworks.tensorflow.scratch --devices 2 --preset quick
"""

if __name__ == "__main__":  # before TensorFlow is loaded: --help is answered at once
    from common.training.cli import main

    raise SystemExit(main("tensorflow", "scratch"))

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from common.base.arrays import Array, Weights
from common.chapters.scratch import ScratchOptions
from common.parallel.shards import same_everywhere, shard_sizes
from frameworks.tensorflow.collectives import allreduce_by
from frameworks.tensorflow.devices import devices as devices, synchronize as synchronize
from frameworks.tensorflow.hosts import everyones, everywhere, launch as launch
from frameworks.tensorflow.kernels import (
    avg_pool2d,
    compiled,
    conv2d,
    dense,
    images,
    on_each_device,
    relu,
)

Device = str
Tensor: TypeAlias = tf.Tensor
Params = dict[str, Tensor]


def get_params(weights: Mapping[str, Array], device: Device) -> Params:
    """A copy of canonical weights on `device`, in their dtype, as variables."""
    with tf.device(device):
        return {name: tf.Variable(values) for name, values in weights.items()}


def replicate(
    weights: Mapping[str, Array], devices: Sequence[Device], options: ScratchOptions
) -> list[Params]:
    """One copy of the weights on each device."""
    return [get_params(weights, device) for device in devices]


def lenet(X: Tensor, params: Params) -> Tensor:
    """The logits (n, 10) of images `X` (n, 1, 28, 28)."""
    h1 = avg_pool2d(relu(conv2d(images(X), params["conv1.weight"], params["conv1.bias"])))
    h2 = avg_pool2d(relu(conv2d(h1, params["conv2.weight"], params["conv2.bias"])))
    h3 = relu(dense(h2, params["fc1.weight"], params["fc1.bias"]))
    return dense(h3, params["fc2.weight"], params["fc2.bias"])


def loss(y_hat: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy (n,) of each example, from its logits (n, 10) and class (n,)."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=y_hat)


def allreduce(data: Sequence[Tensor]) -> list[Tensor]:
    """The sum of tensors that lie on k devices: one copy of it on each of them."""
    with tf.device(data[0].device):
        total = tf.add_n(data)
    copies = []
    for tensor in data:
        with tf.device(tensor.device):
            copies.append(tf.identity(total))
    return copies


def scatter(array: Array, devices: Sequence[Device]) -> list[Tensor]:
    """The k shards of an array, each on its device; their lengths differ by at most one."""
    shards = []
    sizes = shard_sizes(array.shape[0], len(devices))
    for shard, device in zip(tf.split(array, sizes), devices, strict=True):
        with tf.device(device):
            shards.append(tf.identity(shard))
    return shards


def split_batch(X: Array, y: Array, devices: Sequence[Device]) -> tuple[list[Tensor], list[Tensor]]:
    """The k shards of a minibatch, each on its device; they differ by at most one example."""
    return scatter(X, devices), scatter(y, devices)


def shard_loss_and_grad(
    params: Params, X: Tensor, y: Tensor, examples: int
) -> tuple[Tensor, Params]:
    """A shard's part of the mean loss over all `examples` of the minibatch, and its gradient.

    A shard without examples adds nothing to either.
    """
    # The gradient too has to be taken here: it is computed where it is asked for.
    with tf.device(X.device), tf.GradientTape() as tape:
        shard_loss = tf.reduce_sum(loss(lenet(X, params), y)) / examples
        # Zero where nothing depends on a parameter, as in a shard without examples.
        zero = tf.UnconnectedGradients.ZERO
        return shard_loss, tape.gradient(shard_loss, params, unconnected_gradients=zero)


def sum_gradients(grads: Sequence[Params], algorithm: str) -> list[Params]:
    """The sum of k devices' gradients, on each of them."""
    if algorithm != "star" or everywhere(grads) > len(grads):  # else the book's, on one host
        return allreduce_by(algorithm, grads)
    summed = {name: allreduce([grad[name] for grad in grads]) for name in grads[0]}
    return [{name: copies[i] for name, copies in summed.items()} for i in range(len(grads))]


@tf.function(autograph=False)
def forward_backward(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[Device],
    algorithm: str,
) -> tuple[Tensor, list[Params]]:
    """The mean loss over the minibatch, and its gradient on each device."""
    X_shards, y_shards = split_batch(X, y, devices)
    results = on_each_device(
        shard_loss_and_grad, device_params, X_shards, y_shards, examples=X.shape[0]
    )
    losses, grads = zip(*results, strict=True)
    return allreduce(everyones(losses))[0], sum_gradients(grads, algorithm)


def sgd(params: Params, grads: Params, lr: float) -> None:
    """One step of stochastic gradient descent on one device, in place."""
    for name, param in params.items():
        with tf.device(param.device):
            param.assign_sub(lr * grads[name])


@compiled
def train_batch(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[Device],
    lr: float,
    options: ScratchOptions,
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the first device."""
    mean_loss, device_grads = forward_backward(X, y, device_params, devices, options.allreduce)
    for params, grads in zip(device_params, device_grads, strict=True):
        sgd(params, grads, lr)
    return mean_loss


def gradients(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[Device],
    options: ScratchOptions,
) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    _, device_grads = forward_backward(X, y, device_params, devices, options.allreduce)
    return {name: grad.numpy() for name, grad in device_grads[0].items()}


@tf.function(autograph=False)
def predict_shards(
    X: Array, device_params: Sequence[Params], devices: Sequence[Device]
) -> list[Tensor]:
    """The logits of each device's shard of a batch, (its examples, 10)."""
    logits = []
    for shard, params in zip(scatter(X, devices), device_params, strict=True):
        with tf.device(shard.device):
            logits.append(lenet(shard, params))
    return logits


def predict(X: Array, device_params: Sequence[Params], devices: Sequence[Device]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    logits = predict_shards(X, device_params, devices)
    return np.concatenate([shard.numpy() for shard in logits])


def export(device_params: Sequence[Params]) -> Weights:
    """The weights, by canonical names; checks that all replicas are the same."""
    return same_everywhere(
        [{name: param.numpy() for name, param in params.items()} for params in device_params]
    )


save = export
"""All that the next step depends on: plain SGD keeps nothing but the weights."""


def restore(
    saved: Mapping[str, Array], device_params: Sequence[Params], devices: Sequence[Device]
) -> None:
    """Puts every device's copy where `save` found others."""
    for params in device_params:
        for name, param in params.items():
            param.assign(saved[name])
