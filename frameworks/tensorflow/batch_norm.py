"""Batch normalization in Keras: over each device's shard, or over the global minibatch."""

import itertools
from collections.abc import Callable
from typing import TypeAlias

import tensorflow as tf

from common.models.nets import EPSILON, MOMENTUM

Tensor: TypeAlias = tf.Tensor
Shape = tuple[int | None, ...]

KEYS = itertools.count(1_000_000, step=5)
"""By its key an operation finds its counterparts. `collectives` has smaller keys."""


class BatchNorm(tf.keras.layers.Layer):  # type: ignore[misc]
    """Batch normalization over a shard, each device with its own statistics: Keras averages."""

    def build(self, input_shape: Shape) -> None:
        """Makes the variables for images of this shape (n, rows, columns, channels)."""
        channels = input_shape[-1:]
        self.scale = self.add_weight(name="weight", shape=channels, initializer="ones")
        self.shift = self.add_weight(name="bias", shape=channels, initializer="zeros")
        self.running_mean = self.statistic("running_mean", channels)
        self.running_var = self.statistic("running_var", channels)

    def statistic(self, name: str, shape: Shape) -> tf.Variable:
        """A variable that each device moves by itself; outside, the first one's is read."""
        return tf.keras.Variable(
            "zeros",
            shape,
            self.variable_dtype,
            trainable=False,
            synchronization="on_read",
            aggregation="only_first_replica",
            name=name,
        )

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The shape of the input; without it Keras would call the layer to find out."""
        return input_shape

    def call(self, X: Tensor, training: bool = False) -> Tensor:
        """Normalizes `X` (n, rows, columns, channels)."""
        mean, var = self.running_mean.value, self.running_var.value
        if training:
            mean, var = self.moments(X)
        return (X - mean) * (self.scale * tf.math.rsqrt(var + EPSILON)) + self.shift

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and biased variance (channels,); the running ones move towards them."""
        n = self.total(tf.cast([tf.size(X, tf.int64) // X.shape[-1]], X.dtype), 0)
        divisor = tf.maximum(n, 1)
        mean = self.average(X, divisor, 1)
        var = self.average(tf.square(X - mean), divisor, 2)
        momentum = MOMENTUM * tf.minimum(n, 1)  # 0, if the shard is empty: then they stay
        for running, new in ((self.running_mean, mean), (self.running_var, var)):
            running.assign(running + momentum * (new - running))
        return mean, var

    def average(self, X: Tensor, n: Tensor, turn: int) -> Tensor:
        """The mean (channels,) over the `n` pixels that are normalized together."""

        # TensorFlow's gradient takes ten times the operations where a size is unknown.
        @tf.custom_gradient
        def averaged(X: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
            def gradient(upstream: Tensor) -> Tensor:
                # Every device's mean depends on this shard, so the gradients are summed, too.
                per_device = self.total(upstream / n, turn + 2)
                return tf.broadcast_to(per_device, tf.shape(X))

            return self.total(sums(X), turn) / n, gradient

        return averaged(X)

    def total(self, values: Tensor, turn: int) -> Tensor:
        """Sums over a shard to those over all: `turn` is which of a layer's five in a step."""
        return values


class SyncBatchNorm(BatchNorm):
    """Batch normalization over the global minibatch: Keras takes the variance in one pass."""

    def build(self, input_shape: Shape) -> None:
        """Makes the variables, and counts the devices."""
        super().build(input_shape)
        self.devices = tf.distribute.get_strategy().num_replicas_in_sync
        self.key = next(KEYS)

    def total(self, values: Tensor, turn: int) -> Tensor:
        """All-reduces the local shard's sums."""
        if self.devices == 1:
            return values
        # Every device adds up by itself, in the order of the devices: an all-reduce in a ring
        # would add up each part in another order.
        gathered = tf.raw_ops.CollectiveGather(
            input=values,
            group_size=self.devices,
            group_key=self.key,
            instance_key=self.key + turn,
            shape=[self.devices * values.shape[0]],
        )
        return tf.reduce_sum(tf.reshape(gathered, (self.devices, -1)), axis=0)


def sums(X: Tensor) -> Tensor:
    """The sum (channels,) over `X` (n, rows, columns, channels)."""
    # In one go TensorFlow adds up number by number, which is 20 times less exact.
    return tf.reduce_sum(tf.reduce_sum(X, axis=(1, 2)), axis=0)


BATCH_NORMS = {"per-device": BatchNorm, "sync": SyncBatchNorm}
