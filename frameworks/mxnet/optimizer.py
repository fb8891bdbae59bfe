"""An optimizer for Gluon's Trainer."""

import mxnet as mx

from frameworks.mxnet.layouts import Tensor


class SGD(mx.optimizer.Optimizer):  # type: ignore[misc]
    """Stochastic gradient descent: MXNet's own rounds learning rates to single precision.

    In float64 a step would then be off by as much as in float32.
    """

    def create_state(self, index: int, weight: Tensor) -> None:
        """Without momentum there is no state."""

    def update(self, index: int, weight: Tensor, grad: Tensor, state: None) -> None:
        """One step for one parameter, in place."""
        weight -= (self.learning_rate * self.rescale_grad) * grad
