"""ResNet-18 on several devices with `tf.distribute.MirroredStrategy`.

python -m frameworks.tensorflow.concise --devices 2 --preset quick
"""

if __name__ == "__main__":  # before TensorFlow is loaded: --help is answered at once
    from common.training.cli import main

    raise SystemExit(main("tensorflow", "concise"))

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from common.backends.launch import launch as launch
from common.base.arrays import Array, Weights
from common.models.nets import trainable
from common.parallel.shards import same_everywhere, shard_sizes
from frameworks.tensorflow.devices import devices as devices
from frameworks.tensorflow.devices import synchronize as synchronize
from frameworks.tensorflow.layers import activations as activations
from frameworks.tensorflow.resnet import named_variables, resnet18, summed

Tensor: TypeAlias = tf.Tensor


@dataclass(frozen=True, eq=False)
class Replicas:
    """The net and its variables by canonical names: the strategy has a copy on each device."""

    strategy: tf.distribute.Strategy
    net: tf.keras.Model
    params: Mapping[str, tf.Variable]
    statistics: Mapping[str, tf.Variable]


def replicate(
    weights: Mapping[str, Array],
    devices: Sequence[str],
    /,
    *,
    batch_norm: str = "per-device",
    wrapper: str = "mirrored",
) -> Replicas:
    """ResNet-18 with these weights, mirrored on all devices."""
    # Of all ways to add up, this is the one that synchronized batch norm can use on CPUs.
    strategy = tf.distribute.MirroredStrategy(
        devices, cross_device_ops=tf.distribute.ReductionToOneDevice()
    )
    with strategy.scope():
        net = resnet18(len(weights["conv1.bias"]), batch_norm, weights["conv1.bias"].dtype.name)
        variables = named_variables(net)
        for name, variable in variables.items():
            variable.assign(turned(weights[name], (2, 3, 1, 0)))
    params = {name: variable for name, variable in variables.items() if trainable(name)}
    statistics = {name: variable for name, variable in variables.items() if name not in params}
    return Replicas(strategy, net, params, statistics)


def turned(values: Array, axes: Sequence[int]) -> Array:
    """Convolutions with their axes permuted; all else has the same layout in Keras."""
    return values.transpose(axes) if values.ndim == 4 else values


def copies(value: tf.Variable | Tensor, replicas: Replicas) -> tuple[tf.Variable | Tensor, ...]:
    """What each device has of a value."""
    found: tuple[tf.Variable | Tensor, ...] = replicas.strategy.experimental_local_results(value)
    return found


def split_batch(batch: Tensor, replicas: Replicas) -> tf.distribute.DistributedValues:
    """A minibatch's shards, one for each device."""
    split = tf.split(batch, shard_sizes(batch.shape[0], replicas.strategy.num_replicas_in_sync))
    return replicas.strategy.experimental_distribute_values_from_function(
        lambda context: split[context.replica_id_in_sync_group]
    )


def loss(y_hat: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy (n,) of each example, from its logits (n, 10) and class (n,)."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=y_hat)


@tf.function(autograph=False)
def forward_backward(X: Tensor, y: Tensor, replicas: Replicas) -> tuple[Tensor, dict[str, Tensor]]:
    """The mean loss over the minibatch, and its gradient on each device."""

    def on_device(X_shard: Tensor, y_shard: Tensor) -> Tensor:
        with tf.GradientTape() as tape:
            y_hat = replicas.net(X_shard, training=True)
            shard_loss = tf.reduce_sum(loss(y_hat, y_shard)) / X.shape[0]
        found = shard_loss, tape.gradient(shard_loss, replicas.params)
        return tf.nest.map_structure(summed, found)

    everyones = (split_batch(X, replicas), split_batch(y, replicas))
    mean_loss, grads = replicas.strategy.run(on_device, everyones)
    return copies(mean_loss, replicas)[0], grads


@tf.function(autograph=False)
def sgd(replicas: Replicas, grads: dict[str, Tensor], lr: Tensor) -> None:
    """One step of stochastic gradient descent, in place, on every device."""
    for name, param in replicas.params.items():
        # Keras's optimizers would round the learning rate to float32.
        replicas.strategy.extended.update(
            param, lambda copy, grad: copy.assign_sub(lr * grad), (grads[name],)
        )


def train_batch(
    X: Array, y: Array, replicas: Replicas, devices: Sequence[str], lr: float
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the first device."""
    mean_loss, grads = forward_backward(X, y, replicas)
    # As a number the rate would be compiled in: a new one would mean a new program.
    sgd(replicas, grads, tf.constant(lr, X.dtype))
    return mean_loss


def gradients(X: Array, y: Array, replicas: Replicas, devices: Sequence[str]) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    everyones = [copy for value in replicas.statistics.values() for copy in copies(value, replicas)]
    kept = [copy.numpy() for copy in everyones]
    _, grads = forward_backward(X, y, replicas)
    for copy, values in zip(everyones, kept, strict=True):
        copy.assign(values)
    return host(grads, replicas)[0]


@tf.function(autograph=False)
def predict_shards(X: Tensor, replicas: Replicas) -> tuple[Tensor, ...]:
    """The logits of each device's shard, by the first device's running statistics."""
    with replicas.strategy.scope():
        for statistic in replicas.statistics.values():
            statistic.assign(statistic.read_value())
    return copies(replicas.strategy.run(replicas.net, (split_batch(X, replicas),)), replicas)


def predict(X: Array, replicas: Replicas, devices: Sequence[str]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    return np.concatenate([shard.numpy() for shard in predict_shards(X, replicas)])


def host(values: Mapping[str, tf.Variable | Tensor], replicas: Replicas) -> list[Weights]:
    """Copies on the host, in canonical layout, of what each device has."""
    found = {name: copies(value, replicas) for name, value in values.items()}
    return [
        {name: turned(each[i].numpy(), (3, 2, 0, 1)).copy() for name, each in found.items()}
        for i in range(replicas.strategy.num_replicas_in_sync)
    ]


def export(replicas: Replicas) -> Weights:
    """Weights and the first device's running statistics; checks that all replicas are the same."""
    return same_everywhere(host(replicas.params, replicas)) | host(replicas.statistics, replicas)[0]
