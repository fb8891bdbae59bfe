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

from common.backends.launch import launch as launch
from common.base.arrays import Array, Weights
from common.parallel.shards import same_everywhere, shard_sizes
from frameworks.tensorflow.collectives import allreduce_by
from frameworks.tensorflow.devices import devices as devices
from frameworks.tensorflow.devices import synchronize as synchronize

Tensor: TypeAlias = tf.Tensor
Params = dict[str, tf.Variable]


def get_params(weights: Mapping[str, Array], device: str) -> Params:
    """A copy of canonical weights on `device`, in their dtype."""
    with tf.device(device):
        return {name: tf.Variable(values) for name, values in weights.items()}


def replicate(weights: Mapping[str, Array], devices: Sequence[str]) -> list[Params]:
    """One copy of the weights on each device."""
    return [get_params(weights, device) for device in devices]


def conv2d(X: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Convolves `X` (n, rows, columns, in) with `weight` (out, in, r, c), without padding."""
    if X.shape[0] == 0:  # in float32, TensorFlow's would return the shape of X
        rows, columns = X.shape[1] - weight.shape[2] + 1, X.shape[2] - weight.shape[3] + 1
        return tf.zeros((0, rows, columns, weight.shape[0]), X.dtype)
    return tf.nn.conv2d(X, tf.transpose(weight, (2, 3, 1, 0)), strides=1, padding="VALID") + bias


def lenet(X: Tensor, params: Params) -> Tensor:
    """The logits (n, 10) of images `X` (n, 1, 28, 28)."""
    h0 = tf.transpose(X, (0, 2, 3, 1))
    h1 = tf.nn.relu(conv2d(h0, params["conv1.weight"], params["conv1.bias"]))
    h1 = tf.nn.avg_pool2d(h1, ksize=2, strides=2, padding="VALID")
    h2 = tf.nn.relu(conv2d(h1, params["conv2.weight"], params["conv2.bias"]))
    h2 = tf.nn.avg_pool2d(h2, ksize=2, strides=2, padding="VALID")
    h2 = tf.reshape(tf.transpose(h2, (0, 3, 1, 2)), (-1, 800))
    h3 = tf.nn.relu(h2 @ params["fc1.weight"] + params["fc1.bias"])
    return h3 @ params["fc2.weight"] + params["fc2.bias"]


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


def split_batch(X: Array, y: Array, devices: Sequence[str]) -> tuple[list[Tensor], list[Tensor]]:
    """The k shards of a minibatch, each on its device; they differ by at most one example."""
    sizes = shard_sizes(X.shape[0], len(devices))
    X_shards, y_shards = [], []
    for X_shard, y_shard, device in zip(
        tf.split(X, sizes), tf.split(y, sizes), devices, strict=True
    ):
        with tf.device(device):
            X_shards.append(tf.identity(X_shard))
            y_shards.append(tf.identity(y_shard))
    return X_shards, y_shards


def sum_gradients(grads: Sequence[dict[str, Tensor]], algorithm: str) -> list[dict[str, Tensor]]:
    """The sum of k devices' gradients, on each of them."""
    if algorithm != "star":  # which is the book's
        return allreduce_by(algorithm, grads)
    summed = {name: allreduce([grad[name] for grad in grads]) for name in grads[0]}
    return [{name: copies[i] for name, copies in summed.items()} for i in range(len(grads))]


@tf.function(autograph=False)
def forward_backward(
    X: Tensor,
    y: Tensor,
    device_params: Sequence[Params],
    devices: Sequence[str],
    algorithm: str,
) -> tuple[Tensor, list[dict[str, Tensor]]]:
    """The mean loss over the minibatch, and its gradient on each device."""
    losses, grads = [], []
    for X_shard, y_shard, params, device in zip(
        *split_batch(X, y, devices), device_params, devices, strict=True
    ):
        # The gradient too has to be taken here: it is computed where it is asked for.
        with tf.device(device), tf.GradientTape() as tape:
            shard_loss = tf.reduce_sum(loss(lenet(X_shard, params), y_shard)) / X.shape[0]
            losses.append(shard_loss)
            # Zero where nothing depends on a parameter, as in a shard without examples.
            zero = tf.UnconnectedGradients.ZERO
            grads.append(tape.gradient(shard_loss, params, unconnected_gradients=zero))
    return allreduce(losses)[0], sum_gradients(grads, algorithm)


def sgd(params: Params, grads: Mapping[str, Tensor], lr: Tensor) -> None:
    """One step of stochastic gradient descent on one device, in place."""
    for name, param in params.items():
        with tf.device(param.device):
            param.assign_sub(lr * grads[name])


def train_batch(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[str],
    lr: float,
    algorithm: str = "star",
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the first device."""
    # As a number the rate would be compiled in: a new one would mean a new program.
    return train_step(X, y, device_params, devices, tf.constant(lr, X.dtype), algorithm)


@tf.function(autograph=False)
def train_step(
    X: Tensor,
    y: Tensor,
    device_params: Sequence[Params],
    devices: Sequence[str],
    lr: Tensor,
    algorithm: str,
) -> Tensor:
    """The same, compiled."""
    mean_loss, device_grads = forward_backward(X, y, device_params, devices, algorithm)
    for params, grads in zip(device_params, device_grads, strict=True):
        sgd(params, grads, lr)
    return mean_loss


def gradients(
    X: Array,
    y: Array,
    device_params: Sequence[Params],
    devices: Sequence[str],
    algorithm: str = "star",
) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    _, device_grads = forward_backward(X, y, device_params, devices, algorithm)
    return {name: grad.numpy() for name, grad in device_grads[0].items()}


@tf.function(autograph=False)
def predict_shards(
    X: Tensor, device_params: Sequence[Params], devices: Sequence[str]
) -> list[Tensor]:
    """The logits of each device's shard of a batch."""
    logits = []
    shards = tf.split(X, shard_sizes(X.shape[0], len(devices)))
    for shard, params, device in zip(shards, device_params, devices, strict=True):
        with tf.device(device):
            logits.append(lenet(shard, params))
    return logits


def predict(X: Array, device_params: Sequence[Params], devices: Sequence[str]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    logits = predict_shards(X, device_params, devices)
    return np.concatenate([shard.numpy() for shard in logits])


def export(device_params: Sequence[Params]) -> Weights:
    """The weights, by canonical names; checks that all replicas are the same."""
    return same_everywhere(
        [{name: param.numpy() for name, param in params.items()} for params in device_params]
    )
