"""What each layer of ResNet-18 makes of a batch in Keras."""

import tensorflow as tf

from common.base.arrays import Array, Weights
from frameworks.tensorflow.layouts import on_host, to_canonical


def layer_outputs(X: Array, net: tf.keras.Model, device: str) -> Weights:
    """What each layer with weights makes of a batch, by its name; the net evaluates it."""
    layers = {layer.name: layer.output for layer in net.layers if layer.weights}
    with tf.device(device):
        found = tf.keras.Model(net.input, layers)(X, training=False)
    return {name: to_canonical(name, on_host(found[name])) for name in layers}
