"""LeNet as Keras's users write it, with TensorFlow's tape."""

from typing import Any

import tensorflow as tf
from keras import Sequential, layers, losses, optimizers

from common.base.arrays import Array, Weights


class Port:
    """A model that has channels last, and kernels as (rows, columns, inputs, outputs)."""

    def start(self, weights: Weights) -> None:
        first = layers.Conv2D(20, 3, activation="relu"), layers.AveragePooling2D(2)
        second = layers.Conv2D(50, 5, activation="relu"), layers.AveragePooling2D(2)
        flatten = layers.Permute((3, 1, 2)), layers.Flatten()
        dense = layers.Dense(128, activation="relu"), layers.Dense(10)
        self.net = Sequential([layers.Input((28, 28, 1)), *first, *second, *flatten, *dense])
        self.names, self.optimizer = list(weights), optimizers.SGD()
        arrays = weights.values()
        self.net.set_weights([v.transpose(2, 3, 1, 0) if v.ndim == 4 else v for v in arrays])

    def logits(self, X: Array) -> Any:
        return self.net(X.transpose(0, 2, 3, 1))

    def step(self, X: Array, y: Array, lr: float) -> Any:
        self.optimizer.learning_rate = lr
        with tf.GradientTape() as tape:
            loss = losses.SparseCategoricalCrossentropy(from_logits=True)(y, self.logits(X))
        params = self.net.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, params), params, strict=True))
        return loss

    def weights(self) -> Weights:
        pairs = zip(self.names, self.net.get_weights(), strict=True)
        return {name: v.transpose(3, 2, 0, 1) if v.ndim == 4 else v for name, v in pairs}
