"""Stochastic gradient descent on all devices of a strategy."""

from collections.abc import Mapping
from dataclasses import dataclass

import tensorflow as tf

from frameworks.tensorflow.collectives import unflatten
from frameworks.tensorflow.wrappers import copies, on_one


@dataclass(frozen=True, eq=False)
class SGD:
    """Stochastic gradient descent in the dtype of the weights: Keras's rounds rates to float32."""

    strategy: tf.distribute.Strategy
    params: Mapping[str, tf.Variable]

    @tf.function(autograph=False)
    def apply(self, grads: tf.Tensor, lr: tf.Tensor) -> None:
        """One step, in place, on every device; each has the gradient as one vector."""
        for index, vector in enumerate(copies(grads, self.strategy)):
            params = on_one(self.params, self.strategy, index)
            with tf.device(params["fc.bias"].device):
                for name, change in unflatten(lr * vector, params).items():
                    params[name].assign_sub(change)
