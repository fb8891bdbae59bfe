"""SGD on one device by the comparison's nets in NumPy."""

from collections.abc import Callable, Iterable, Mapping

from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.compare.numpy_pass import Bounds
from common.models.nets import trainable


class OneDevice:
    """Trains the net of a chapter in float64.

    `split` returns the bounds of n examples' shards, which are normalized separately; by default
    there is one.
    """

    def __init__(
        self,
        chapter: str,
        weights: Mapping[str, Array],
        momentum: float = 0.0,
        split: Callable[[int], Bounds] = lambda n: [(0, n)],
    ) -> None:
        self.chapter, self.momentum, self.split = chapter, momentum, split
        self.weights = numpy_nets.doubled(weights)
        self.velocity = {name: 0 * v for name, v in self.weights.items() if trainable(name)}

    def gradients(self, X: Array, y: Array) -> Weights:
        """The gradient of the mean loss."""
        bounds = self.split(len(X))
        return numpy_nets.step(self.chapter, X, y, self.weights, bounds).gradients

    def step(self, X: Array, y: Array, lr: float) -> float:
        """Takes a step; returns the mean loss."""
        step = numpy_nets.step(self.chapter, X, y, self.weights, self.split(len(X)))
        self.weights |= step.statistics
        for name, gradient in step.gradients.items():
            self.velocity[name] = self.momentum * self.velocity[name] + gradient
            self.weights[name] = self.weights[name] - lr * self.velocity[name]
        return step.loss

    def steps(
        self, minibatches: Iterable[tuple[Array, Array]], rates: Iterable[float]
    ) -> list[float]:
        """Takes a step on each minibatch; returns their losses."""
        return [self.step(X, y, lr) for (X, y), lr in zip(minibatches, rates, strict=True)]

    def logits(self, X: Array) -> Array:
        """The logits (n, 10) in evaluation mode."""
        return numpy_nets.logits(self.chapter, X, self.weights)
