"""LeNet's layers, one by one, as strategies split them, in TensorFlow."""

from collections.abc import Mapping, Sequence

import tensorflow as tf
from tensorflow import Tensor

from frameworks.tensorflow.kernels import avg_pool2d, conv2d, dense, relu
from frameworks.tensorflow.scratch import layer, loss

__all__ = ["layer", "loss"]


def product(layers: Sequence[str], X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The partial sum of a column- and a row-parallel layer, without the latter's bias."""
    column, row = layers
    X, weight = layer(column, X, params), params[f"{row}.weight"]
    if row.startswith("conv"):
        return conv2d(X, weight, tf.zeros(weight.shape[0], weight.dtype))
    return dense(X, weight, tf.zeros(weight.shape[1], weight.dtype))


def finish(name: str, Y: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """The output of a row-parallel layer from the sum over devices; the bias is added once."""
    bias = params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(Y + bias))
    return Y + bias if name == "fc2" else relu(Y + bias)
