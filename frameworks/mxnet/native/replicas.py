"""Replicas of the net: parameters on all devices, and a Gluon trainer that sums their gradients."""

from collections.abc import Mapping, Sequence

import numpy
from mxnet import Context, autograd, gluon, init, np, sym

from common.base.arrays import Array
from common.chapters.splitting import Loss
from common.chapters.strategies import StrategiesOptions
from frameworks.mxnet.kernels import scatter
from frameworks.mxnet.layouts import Tensor, on_host
from frameworks.mxnet.native.net import lenet
from frameworks.mxnet.native.training import Params, Training, transposed
from frameworks.mxnet.scratch import loss
from frameworks.mxnet.wrappers import no_loss


class Replicated(Training):
    """A replica on each device, which takes a shard of each minibatch."""

    def __init__(
        self, weights: Mapping[str, Array], devices: Sequence[Context], options: StrategiesOptions
    ) -> None:
        super().__init__(weights, devices, options)
        self.trainer = gluon.Trainer(
            self.net.collect_params(), self.optimizer, kvstore=self.store, update_on_kvstore=False
        )

    def make(self, weights: Mapping[str, Array]) -> list[list[Params]]:
        """Gluon's parameters, whose gradients add up over microbatches."""
        images = sym.var("data", dtype=self.dtype).as_np_ndarray()
        self.net = gluon.SymbolBlock(lenet(self.plan), images)
        params = self.net.collect_params()
        for name, values in weights.items():
            params[name].shape = transposed(values).shape
        params.setattr("grad_req", "add")
        params.initialize(init.Zero(), ctx=list(self.devices))
        return [
            [
                {name: get(param, device) for name, param in params.items()}
                for device in self.devices
            ]
            for get in (gluon.Parameter.data, gluon.Parameter.grad)
        ]

    def forward_backward(self, X: Array, y: Array) -> Loss:
        """The mean loss of a minibatch; its gradient is left in `grads`."""
        self.net.collect_params().zero_grad()
        parts = []
        for row, device in zip(self.plan.rows_of(len(X)), self.devices, strict=True):
            for each in self.plan.microbatches_of(len(X[row])):
                with autograd.record():
                    part = self.summed_loss(X[row][each], y[row][each], device) / len(X)
                part.backward()
                parts.append(part)
        self.trainer.allreduce_grads()
        return Loss(parts, on_host)

    def summed_loss(self, X: Array, y: Array, device: Context) -> Tensor:
        """The sum of some examples' losses, on a device."""
        if len(X) == 0:  # MXNet cannot convolve nothing
            return no_loss(self.net, device)
        images, classes = (np.array(each, each.dtype, ctx=device) for each in (X, y))
        return loss(self.net(images), classes).sum()

    def update(self) -> None:
        """The trainer changes each device's copy of the weights."""
        self.trainer.update(1)

    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch, in shards."""
        shards = scatter(X, self.devices[: len(X)])
        return numpy.concatenate([on_host(self.net(shard)) for shard in shards])
