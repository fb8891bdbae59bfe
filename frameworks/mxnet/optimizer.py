"""The optimizer of Gluon's Trainer."""

import mxnet as mx

from frameworks.mxnet.layouts import Tensor


class SGD(mx.optimizer.Optimizer):  # type: ignore[misc]
    """SGD in double precision; MXNet's rounds learning rates to single precision."""

    def create_state(self, index: int, weight: Tensor) -> None:
        """Without momentum there is no state."""

    def update(self, index: int, weight: Tensor, grad: Tensor, state: None) -> None:
        """One step for one parameter, in place."""
        weight -= (self.learning_rate * self.rescale_grad) * grad
