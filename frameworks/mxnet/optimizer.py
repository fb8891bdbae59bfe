"""Optimizers for Gluon's Trainer."""

from collections.abc import Mapping

import mxnet as mx

from frameworks.mxnet.layouts import Tensor


class SGD(mx.optimizer.Optimizer):  # type: ignore[misc]
    """SGD in double precision; MXNet's rounds learning rates to single precision."""

    def create_state(self, index: int, weight: Tensor) -> None:
        """Without momentum there is no state."""

    def update(self, index: int, weight: Tensor, grad: Tensor, state: None) -> None:
        """One step for one parameter, in place."""
        weight -= (self.learning_rate * self.rescale_grad) * grad


class Momentum(mx.optimizer.Optimizer):  # type: ignore[misc]
    """The same with momentum, v = m v + g, w = w - lr v, and each device's `velocities` by name."""

    def __init__(self, velocities: Mapping[mx.Context, Mapping[str, Tensor]]) -> None:
        super().__init__()
        self.velocities, self.momentum = velocities, 0.0

    def create_state(self, index: int, weight: Tensor) -> Tensor:
        """The velocity of a trainer's parameter; the trainer uses arrays of the older interface."""
        return self.velocities[weight.ctx][self.param_dict[index].name].as_nd_ndarray()

    def update(self, index: int, weight: Tensor, grad: Tensor, velocity: Tensor) -> None:
        """One step for one parameter, in place."""
        velocity *= self.momentum
        velocity += self.rescale_grad * grad
        weight -= self.learning_rate * velocity
