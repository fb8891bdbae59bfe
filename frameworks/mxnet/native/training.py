"""The step and the local tensors, shared by MXNet's two native strategies."""

from collections.abc import Mapping, Sequence

import mxnet as mx
from mxnet import np

from common.base.arrays import Array, Weights
from common.chapters.splitting import Loss, SplitTrainer, zeros
from common.chapters.strategies import StrategiesOptions
from common.parallel.replicas import parts_of, whole
from frameworks.mxnet.layouts import Tensor, on_host
from frameworks.mxnet.optimizer import Momentum

Params = dict[str, Tensor]


class Training(SplitTrainer):
    """LeNet; `params`, `grads` and `momenta` are local to each device."""

    def __init__(
        self,
        weights: Mapping[str, Array],
        devices: Sequence[mx.Context],
        options: StrategiesOptions,
    ) -> None:
        self.devices, self.plan = devices, options.plan(len(devices))
        held = self.plan.weights.items()
        self.layouts = {name: layout * self.plan.replicas for name, layout in held}
        self.dtype, self.store = weights["fc2.bias"].dtype, mx.kvstore.create("device")
        self.params, self.grads = self.make(weights)
        self.momenta = [{k: np.zeros_like(v) for k, v in local.items()} for local in self.params]
        self.optimizer = Momentum(dict(zip(devices, self.momenta, strict=True)))
        self.optimizer.momentum = options.momentum
        self.put(weights, zeros(weights))

    def make(self, weights: Mapping[str, Array]) -> list[list[Params]]:
        """For each device, room for its parameters, and for their gradients."""
        raise NotImplementedError

    def forward_backward(self, X: Array, y: Array) -> Loss:
        """The mean loss of a minibatch; its gradient is left in `grads`."""
        raise NotImplementedError

    def update(self) -> None:
        """Changes the weights by the gradients."""
        raise NotImplementedError

    def train_batch(self, X: Array, y: Array, lr: float) -> Loss:
        """One step of SGD with momentum on a minibatch; returns its mean loss, which waits."""
        mean_loss = self.forward_backward(X, y)
        self.optimizer.set_learning_rate(lr)
        self.update()
        return mean_loss

    def gradients(self, X: Array, y: Array) -> Weights:
        """The whole gradient of the mean loss of a minibatch."""
        self.forward_backward(X, y)
        return self._whole(self.grads)

    def export(self) -> Weights:
        """The whole weights. Raises RunError if copies of one are not the same bit for bit."""
        return self._whole(self.params)

    def velocities(self) -> Weights:
        """The whole velocities; raises RunError as `export`."""
        return self._whole(self.momenta)

    def put(self, weights: Mapping[str, Array], velocities: Mapping[str, Array]) -> None:
        """Gives each device its part of the weights and of their velocities."""
        for given, held in ((weights, self.params), (velocities, self.momenta)):
            for device, local in enumerate(held):
                for name, values in parts_of(given, self.layouts, device).items():
                    local[name][:] = transposed(values)

    def _whole(self, held: Sequence[Params]) -> Weights:
        """Whole tensors on the host, gathered from all devices."""
        parts = [{name: transposed(on_host(v)) for name, v in local.items()} for local in held]
        return whole(parts, self.layouts, self.plan.shapes)


def transposed(values: Array) -> Array:
    """A dense layer's weight, (in, out), in MXNet's layout, (out, in), and back."""
    return values.T if values.ndim == 2 else values
