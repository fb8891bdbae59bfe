"""`keras.distribution` splits nothing on TensorFlow, and accepts any names of devices.

Written: `DataParallel` over two devices, or over two that do not exist; a minibatch of four images.
Expected: two devices with two images each.
"""

import keras
import numpy as np
import tensorflow as tf

from silent.replicas import VERSION, two
from silent.report import report

X = np.zeros((4, 1))


class Net(keras.Model):
    """A net that records the number of images of each call."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = sizes
        self.dense = keras.layers.Dense(1)

    def call(self, X: tf.Tensor) -> tf.Tensor:
        tf.py_function(lambda X: self.sizes.append(len(X)), [X], [])
        return self.dense(X)


def fit_sizes(net: Net) -> list[int]:
    net.compile("sgd", "mse")
    net.fit(X, X, batch_size=len(X), verbose=0)
    return net.sizes


if __name__ == "__main__":
    strategy = two()
    results = {}
    for devices in ["cpu:0", "cpu:1"], ["no:0", "such:1"]:
        with keras.distribution.DataParallel(devices=devices).scope():
            results[f"images of each device, {' and '.join(devices)}"] = fit_sizes(Net([]))
    with strategy.scope():
        remedies = {"tf.distribute.MirroredStrategy": fit_sizes(Net([]))}
    report(VERSION, [2, 2], results, remedies)
