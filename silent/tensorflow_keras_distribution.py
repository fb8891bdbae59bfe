"""`keras.distribution` splits nothing on TensorFlow, and takes any names of devices.

Written: a `DataParallel` over two devices, or over two that do not exist, and a minibatch of four
images.
Expected: two devices, each of which is given two images.
"""

import keras
import numpy as np
import tensorflow as tf

from silent.replicas import VERSION, two
from silent.telling import tell

X = np.zeros((4, 1))


class Net(keras.Model):
    """A net that writes down how many images a device is given."""

    def __init__(self, given: list[int]) -> None:
        super().__init__()
        self.given = given
        self.dense = keras.layers.Dense(1)

    def call(self, X: tf.Tensor) -> tf.Tensor:
        tf.py_function(lambda X: self.given.append(len(X)), [X], [])
        return self.dense(X)


def given(net: Net) -> list[int]:
    net.compile("sgd", "mse")
    net.fit(X, X, batch_size=len(X), verbose=0)
    return net.given


if __name__ == "__main__":
    strategy = two()
    came = {}
    for devices in ["cpu:0", "cpu:1"], ["no:0", "such:1"]:
        with keras.distribution.DataParallel(devices=devices).scope():
            came[f"images of each device, {' and '.join(devices)}"] = given(Net([]))
    with strategy.scope():
        instead = {"tf.distribute.MirroredStrategy": given(Net([]))}
    tell(VERSION, [2, 2], came, instead)
