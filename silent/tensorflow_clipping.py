"""Keras's optimizers clip the gradient of each replica, before the gradients are added.

Written: `SGD(global_clipnorm=1)` under MirroredStrategy, on two replicas.
Expected: the step of one device: the sum of both gradients, clipped to the norm 1.
"""

import keras
import numpy as np
import tensorflow as tf

from silent.replicas import VERSION, run, two
from silent.report import report

GRADIENTS = np.array([[3.0, 0.0], [0.0, 4.0]])  # a row for each replica


def after_a_step(strategy: tf.distribute.Strategy, *, clip_sum: bool) -> list[float]:
    with strategy.scope():
        weight = tf.Variable([0.0, 0.0], dtype=tf.float64)
        sgd = keras.optimizers.SGD(1.0, global_clipnorm=None if clip_sum else 1)
        sgd.build([weight])

    def step(gradient: tf.Tensor) -> None:
        if clip_sum:
            total = tf.distribute.get_replica_context().all_reduce("sum", gradient)
            # The optimizer adds what the replicas give it: each gives its share.
            gradient = tf.clip_by_norm(total, 1) / len(GRADIENTS)
        sgd.apply_gradients([(gradient, weight)])

    run(strategy, step, list(GRADIENTS))
    return list(weight.numpy())


if __name__ == "__main__":
    strategy, total = two(), GRADIENTS.sum(0)
    results = {"SGD(global_clipnorm=1)": after_a_step(strategy, clip_sum=False)}
    remedies = {"all_reduce, then clip_by_norm": after_a_step(strategy, clip_sum=True)}
    report(VERSION, -total / np.linalg.norm(total), results, remedies)
