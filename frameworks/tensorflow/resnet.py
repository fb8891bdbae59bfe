"""The book's ResNet-18 in Keras; images are channels-last inside."""

from dataclasses import dataclass
from typing import TypeAlias

import tensorflow as tf

from common.models.nets import BLOCKS, STAGES
from frameworks.tensorflow.batch_norm import BATCH_NORMS

Tensor: TypeAlias = tf.Tensor


class Conv2D(tf.keras.layers.Conv2D):  # type: ignore[misc]
    """Keras's convolution, for an empty shard too: oneDNN gives none the shape of its input."""

    def convolution_op(self, X: Tensor, kernel: Tensor) -> Tensor:
        """Convolves `X` (n, rows, columns, channels), without the bias."""
        if X.shape[0] == 0:
            # Every device takes part in every sum, so gradients have to be 0, not missing.
            nothing = tf.reshape(X, self.compute_output_shape(tuple(X.shape)))
            return nothing + tf.reduce_sum(kernel, axis=(0, 1, 2))
        if self.kernel_size == (1, 1):
            # oneDNN's gradient of a 1 x 1 kernel with a stride may write where memory is not its
            # own. Of every second pixel as a slice, TensorFlow would forget how many images it is.
            X = tf.nn.max_pool2d(X, ksize=1, strides=self.strides, padding="VALID")
            return tf.nn.conv2d(X, kernel, strides=1, padding="VALID")
        return super().convolution_op(X, kernel)


@dataclass(frozen=True)
class Layers:
    """The layers that have weights, by canonical names."""

    batch_norm: str
    dtype: str

    def conv(self, X: Tensor, name: str, out: int, stride: int = 1) -> Tensor:
        """3 x 3: (n, rows, columns, channels) to (n, rows / stride, columns / stride, out)."""
        if stride == 1:
            return Conv2D(out, 3, padding="same", dtype=self.dtype, name=name)(X)
        # Where the stride is 2, "same" would pad one side only.
        padded = tf.keras.layers.ZeroPadding2D(1, dtype=self.dtype)(X)
        return Conv2D(out, 3, strides=stride, dtype=self.dtype, name=name)(padded)

    def shortcut(self, X: Tensor, name: str, out: int) -> Tensor:
        """1 x 1, stride 2: (n, rows, columns, channels) to (n, rows / 2, columns / 2, out)."""
        return Conv2D(out, 1, strides=2, dtype=self.dtype, name=name)(X)

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
    """The book's ResNet-18, scaled to `width` channels in the first stage (the book's: 64)."""
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
