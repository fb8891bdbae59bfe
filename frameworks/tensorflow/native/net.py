"""LeNet for a whole minibatch (groups, parts, n, ...) by slices, sums and products of matrices.

DTensor refuses to split the filters of a convolution, and the gradient of pooling.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import tensorflow as tf

Tensor: TypeAlias = tf.Tensor
Params = dict[str, Tensor]


def conv2d(X: Tensor, weight: Tensor) -> Tensor:
    """Convolves `X` (r, p, n, rows, columns, in) with `weight` (out, in, h, w), no padding."""
    outputs, inputs, h, w = weight.shape
    rows, columns = X.shape[3] - h + 1, X.shape[4] - w + 1
    # Not by `tf.stack`: DTensor would bring all channels to each device.
    X = tf.expand_dims(X, 5)
    strips = tf.concat([X[:, :, :, i : i + rows] for i in range(h)], 5)
    patches = tf.concat([strips[:, :, :, :, j : j + columns] for j in range(w)], 5)
    kernel = tf.reshape(tf.transpose(weight, (3, 2, 1, 0)), (w * h, inputs, outputs))
    return tf.einsum("rpnyxki,kio->rpnyxo", patches, kernel)


def avg_pool2d(X: Tensor) -> Tensor:
    """The means of 2 x 2 windows of `X` (r, p, n, rows, columns, channels), without odd edges."""
    rows, columns = X.shape[3] // 2 * 2, X.shape[4] // 2 * 2
    corners = [X[:, :, :, i:rows:2, j:columns:2] for i in range(2) for j in range(2)]
    return tf.add_n(corners) / 4


def layer(name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a layer for `X` (r, p, n, ...), with its activation and pooling."""
    weight, bias = params[f"{name}.weight"], params[f"{name}.bias"]
    if len(weight.shape) == 4:
        return avg_pool2d(tf.nn.relu(conv2d(X, weight) + bias))
    if len(X.shape) == 6:  # flattened with its channels first
        X = tf.reshape(tf.transpose(X, (0, 1, 2, 5, 3, 4)), (*X.shape[:3], -1))
    Y = tf.einsum("rpni,io->rpno", X, weight) + bias
    return Y if name == "fc2" else tf.nn.relu(Y)


def lenet(
    X: Tensor, params: Params, names: Sequence[str], layer: Callable[[str, Tensor, Params], Tensor]
) -> Tensor:
    """The logits (r, p, n, 10) of images (r, p, n, 1, 28, 28), by layers of these names."""
    Y = tf.transpose(X, (0, 1, 2, 4, 5, 3))
    for name in names:
        Y = layer(name, Y, {key: params[key] for key in (f"{name}.weight", f"{name}.bias")})
    return Y


def mean_loss(logits: Tensor, y: Tensor, share: Tensor) -> Tensor:
    """The weighted sum of the losses of some examples."""
    classes = tf.one_hot(y, logits.shape[-1], dtype=logits.dtype)
    losses = -tf.reduce_sum(classes * tf.nn.log_softmax(logits), axis=-1)
    return tf.reduce_sum(losses * share)
