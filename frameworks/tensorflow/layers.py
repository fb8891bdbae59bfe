"""What each layer of ResNet-18 makes of a batch in Keras."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from common.base.arrays import Array, Weights

if TYPE_CHECKING:
    from frameworks.tensorflow.concise import Replicas


def activations(X: Array, replicas: "Replicas", devices: Sequence[str]) -> Weights:
    """What each layer with weights makes of a batch on the first device, by its name."""
    layers = {layer.name: layer.output for layer in replicas.net.layers if layer.weights}
    with tf.device(devices[0]):
        found = tf.keras.Model(replicas.net.input, layers)(X, training=False)
    return {name: channels_first(found[name].numpy()) for name in layers}


def channels_first(values: Array) -> Array:
    """Images (n, rows, columns, channels) as (n, channels, rows, columns)."""
    return values.transpose(0, 3, 1, 2) if values.ndim == 4 else values
