"""LeNet trained with momentum by NumPy on one device: what every way to split has to give."""

from common.base.arrays import Array, Weights
from common.chapters.strategies import StrategiesOptions
from common.compare import numpy_nets
from common.models.initial import initial_weights

RATES = (0.1, 0.05, 0.2)
"""Of each step: a framework must not stay with the first."""

MOMENTUM = 0.9

MOST_DEVICES = 5
"""How many virtual devices any test takes: some frameworks fix their number at the start."""


def numbers(options: StrategiesOptions) -> Weights:
    """Weights from which the first steps already train."""
    return {k: 8 * v for k, v in initial_weights(options.shapes(), 3, "float64").items()}


class OneDevice:
    """SGD with momentum, by NumPy."""

    def __init__(self, weights: Weights) -> None:
        self.weights = {name: values.copy() for name, values in weights.items()}
        self.velocity = {name: 0 * values for name, values in weights.items()}

    def step(self, X: Array, y: Array, lr: float) -> float:
        found = numpy_nets.step("strategies", X, y, self.weights, [(0, len(y))])
        for name, gradient in found.gradients.items():
            self.velocity[name] = MOMENTUM * self.velocity[name] + gradient
            self.weights[name] = self.weights[name] - lr * self.velocity[name]
        return found.loss
