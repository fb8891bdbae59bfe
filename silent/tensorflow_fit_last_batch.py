"""Keras's `fit` under MirroredStrategy takes the mean over replicas, not over examples.

Written: `fit` with seven examples and a batch size of four, so the last batch is split in 2 and 1.
Expected: the weight after `fit` on one device.
"""

import keras
import numpy as np
import tensorflow as tf

from silent.replicas import VERSION, run, two
from silent.report import report

X = np.array([[1.0], [2.0], [3.0], [6.0], [1.0], [2.0], [6.0]])
BATCH = 4


def compiled() -> keras.Model:
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    net = keras.Sequential([keras.Input((1,)), layer])
    net.compile(keras.optimizers.SGD(1.0), loss=lambda y, prediction: prediction[:, 0])
    return net


def fitted(net: keras.Model) -> float:
    net.fit(X, np.zeros(len(X)), BATCH, shuffle=False, verbose=0)
    return float(net.get_weights()[0].item())


def looped(net: keras.Model, strategy: tf.distribute.Strategy) -> float:
    for i in range(0, len(X), BATCH):
        batch = X[i : i + BATCH]

        def step(shard: tf.Tensor, n: int = len(batch)) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(net(shard)) / n
            gradients = tape.gradient(loss, net.trainable_variables)
            net.optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))

        run(strategy, step, np.array_split(batch, 2))
    return float(net.get_weights()[0].item())


if __name__ == "__main__":
    strategy = two()
    with strategy.scope():
        split, again = compiled(), compiled()
    results = {"fit": fitted(split)}
    remedies = {"a loop, sum(loss) / n": looped(again, strategy)}
    report(VERSION, fitted(compiled()), results, remedies)
