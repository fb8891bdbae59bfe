"""The book's ResNet-18 in Keras; images are channels-last inside."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import tensorflow as tf

from common.models.nets import BLOCKS, EPSILON, MOMENTUM, STAGES

Tensor: TypeAlias = tf.Tensor
Shape = tuple[int | None, ...]


class Conv2D(tf.keras.layers.Conv2D):  # type: ignore[misc]
    """Keras's convolution, for an empty shard too: oneDNN gives none the shape of its input."""

    def convolution_op(self, X: Tensor, kernel: Tensor) -> Tensor:
        """Convolves `X` (n, rows, columns, channels), without the bias."""
        if X.shape[0] != 0:
            return super().convolution_op(X, kernel)
        # Every device takes part in every sum, so gradients have to be 0, not missing.
        nothing = tf.reshape(X, self.compute_output_shape(tuple(X.shape)))
        return nothing + tf.reduce_sum(kernel, axis=(0, 1, 2))


class BatchNorm(tf.keras.layers.Layer):  # type: ignore[misc]
    """Batch normalization over a device's shard.

    Each device has running statistics of its own; Keras's layer would average them.
    """

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
        """The same; told so, Keras does not call the layer where there are no replicas."""
        return input_shape

    def call(self, X: Tensor, training: bool = False) -> Tensor:
        """Normalizes `X` (n, rows, columns, channels)."""
        mean, var = self.running_mean.value, self.running_var.value
        if training:
            mean, var = self.moments(X)
        return (X - mean) * (self.scale * tf.math.rsqrt(var + EPSILON)) + self.shift

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and biased variance (channels,); the running ones move towards them."""
        pixels = tf.constant([X.shape[0] * X.shape[1] * X.shape[2]], X.dtype)
        total = self.total(tf.concat([sums(X), pixels], axis=0))
        n = tf.stop_gradient(total[-1])  # 0, if the shard is empty: then the statistics stay
        mean = total[:-1] / tf.maximum(n, 1)
        var = self.total(sums(tf.square(X - mean))) / tf.maximum(n, 1)
        momentum = MOMENTUM * tf.minimum(n, 1)
        self.running_mean.value.assign_add(momentum * (mean - self.running_mean))
        self.running_var.value.assign_add(momentum * (var - self.running_var))
        return mean, var

    def total(self, values: Tensor) -> Tensor:
        """Sums over the local shard to those over all that is normalized together."""
        return values


class SyncBatchNorm(BatchNorm):
    """Batch normalization over the global minibatch: Keras takes the variance in one pass."""

    def total(self, values: Tensor) -> Tensor:
        """Sums over the local shard to those over everyone's."""
        return all_reduce(values)


def sums(X: Tensor) -> Tensor:
    """The sum (channels,) over `X` (n, rows, columns, channels)."""
    # In one go TensorFlow adds up number by number, which is 20 times less exact.
    return tf.reduce_sum(tf.reduce_sum(X, axis=(1, 2)), axis=0)


@tf.custom_gradient
def all_reduce(tensor: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The sum of a tensor over all devices, on each of them, as a function with a gradient."""
    # Everyone's sum depends on this tensor, so everyone's gradient counts. TensorFlow searches the
    # graph behind what this returns for variables, at each call and on all devices, unless there
    # is no gradient: with 8 devices that would take minutes.
    return tf.stop_gradient(summed(tensor)), summed


def summed(tensor: Tensor) -> Tensor:
    """The sum of a tensor over all devices, on each of them."""

    def everyones(strategy: tf.distribute.Strategy, tensors: Tensor) -> Tensor:
        return strategy.extended.reduce_to(tf.distribute.ReduceOp.SUM, tensors, tensors)

    return tf.distribute.get_replica_context().merge_call(everyones, args=(tensor,))


BATCH_NORMS = {"per-device": BatchNorm, "sync": SyncBatchNorm}


@dataclass(frozen=True)
class Layers:
    """The layers that have weights, by canonical names."""

    batch_norm: str
    dtype: str

    def conv(self, X: Tensor, name: str, out: int, stride: int = 1) -> Tensor:
        """3 x 3: (n, rows, columns, channels) to (n, rows / stride, columns / stride, out)."""
        if stride == 1:
            return Conv2D(out, 3, padding="same", dtype=self.dtype, name=name)(X)
        # Where the stride is 2, "same" would pad one side alone.
        padded = tf.keras.layers.ZeroPadding2D(1, dtype=self.dtype)(X)
        return Conv2D(out, 3, strides=stride, dtype=self.dtype, name=name)(padded)

    def shortcut(self, X: Tensor, name: str, out: int) -> Tensor:
        """1 x 1, stride 2: (n, rows, columns, channels) to (n, rows / 2, columns / 2, out)."""
        # oneDNN's gradient of a 1 x 1 kernel with stride 2 may write where memory is not its own.
        return Conv2D(out, 1, dtype=self.dtype, name=name)(X[:, ::2, ::2])

    def norm(self, X: Tensor, name: str) -> Tensor:
        """Normalizes `X` (n, rows, columns, channels)."""
        return BATCH_NORMS[self.batch_norm](dtype=self.dtype, name=name)(X)

    def residual(self, X: Tensor, name: str, out: int) -> Tensor:
        """Two convolutions and a shortcut around them; halves the image where channels grow."""
        stride = 1 if X.shape[-1] == out else 2
        Y = self.conv(X, f"{name}.conv1", out, stride)
        Y = tf.keras.ops.relu(self.norm(Y, f"{name}.bn1"))
        Y = self.norm(self.conv(Y, f"{name}.conv2", out), f"{name}.bn2")
        return tf.keras.ops.relu(Y + (self.shortcut(X, f"{name}.conv3", out) if stride > 1 else X))


def resnet18(width: int, batch_norm: str, dtype: str) -> tf.keras.Model:
    """The book's ResNet-18, scaled to `width` channels in the first stage (the book's: 64).

    It maps images (n, 1, 28, 28) to logits (n, 10): a 3 x 3 stem without pooling, four stages of
    two residual blocks, a dense layer.
    """
    layers = Layers(batch_norm, dtype)
    images = tf.keras.Input((1, 28, 28), dtype=dtype)
    X = tf.keras.ops.transpose(images, (0, 2, 3, 1))
    X = tf.keras.ops.relu(layers.norm(layers.conv(X, "conv1", width), "bn1"))
    for stage in STAGES:
        for block in BLOCKS:
            X = layers.residual(X, f"stage{stage}.block{block}", width * 2 ** (stage - 1))
    logits = tf.keras.layers.Dense(10, dtype=dtype, name="fc")(tf.keras.ops.mean(X, axis=(1, 2)))
    return tf.keras.Model(images, logits)


def named_variables(net: tf.keras.Model) -> dict[str, tf.Variable]:
    """The variables of a net, on all replicas, by canonical names."""
    return {
        f"{layer.name}.{variable.name.replace('kernel', 'weight')}": variable.value
        for layer in net.layers
        for variable in layer.weights
    }
