"""Stages on devices by context groups: MXNet's executor copies activations between them.

A microbatch goes forward and back before the next one. A kvstore sums over replicas.
"""

from collections import ChainMap
from collections.abc import Mapping, Sequence

import numpy
from mxnet import Context, autograd, executor, np

from common.base.arrays import Array
from common.chapters.splitting import Loss
from common.chapters.strategies import StrategiesOptions
from common.parallel.replicas import parts_of
from frameworks.mxnet.layouts import Tensor, on_host
from frameworks.mxnet.native.net import group_of, lenet
from frameworks.mxnet.native.training import Params, Training, transposed
from frameworks.mxnet.scratch import loss


class Staged(Training):
    """Each device of a row has a stage of the net; a row is a pipeline."""

    def __init__(
        self, weights: Mapping[str, Array], devices: Sequence[Context], options: StrategiesOptions
    ) -> None:
        super().__init__(weights, devices, options)
        self.net = lenet(self.plan)
        self.executors: dict[tuple[int, int], executor.Executor] = {}
        for name, values in weights.items():
            self.store.init(name, np.array(transposed(values), self.dtype))

    def make(self, weights: Mapping[str, Array]) -> list[list[Params]]:
        """Each device has the weights of its stage."""
        parts = [parts_of(weights, self.layouts, number) for number in range(len(self.devices))]
        return [
            [
                {k: np.zeros(transposed(v).shape, self.dtype, ctx=device) for k, v in part.items()}
                for part, device in zip(parts, self.devices, strict=True)
            ]
            for _ in ("weights", "gradients")
        ]

    def bound(self, row: int, examples: int) -> executor.Executor:
        """The executors of a row for this number of examples; all add to the same gradients."""
        if (row, examples) not in self.executors:
            here = slice(row * self.plan.devices, (row + 1) * self.plan.devices)
            params, grads = (dict(ChainMap(*held[here])) for held in (self.params, self.grads))
            devices = self.devices[here]
            images = np.zeros((examples, 1, 28, 28), self.dtype, ctx=devices[0])
            self.executors[row, examples] = self.net.bind(
                devices[0],
                {**params, "data": images},
                grads,
                grad_req="add",
                group2ctx={group_of(stage): device for stage, device in enumerate(devices)},
            )
        return self.executors[row, examples]

    def logits(self, row: int, X: Array, *, training: bool) -> Tensor:
        """The logits (n, 10) of some examples, on the device of the last stage."""
        bound = self.bound(row, len(X))
        bound.arg_dict["data"][:] = X
        (logits,) = bound.forward(is_train=training)
        return logits.as_np_ndarray()

    def _microbatch(self, row: int, X: Array, y: Array, examples: int) -> Tensor:
        """A microbatch's part of the mean loss over `examples`; its gradient is added up."""
        logits = self.logits(row, X, training=True)
        logits.attach_grad()
        with autograd.record():
            part = loss(logits, np.array(y, y.dtype, ctx=logits.ctx)).sum() / examples
        part.backward()
        self.bound(row, len(X)).backward(logits.grad.as_nd_ndarray())
        return part

    def forward_backward(self, X: Array, y: Array) -> Loss:
        """The mean loss of a minibatch; its gradient is left in `grads`."""
        for grad in (grad for local in self.grads for grad in local.values()):
            grad[:] = 0
        parts = []
        for row, here in enumerate(self.plan.rows_of(len(X))):
            X_row, y_row = X[here], y[here]
            for microbatch in self.plan.microbatches_of(len(X_row)):
                if len(X_row):
                    parts.append(
                        self._microbatch(row, X_row[microbatch], y_row[microbatch], len(X))
                    )
        if self.plan.replicas > 1:
            for name in self.plan.shapes:
                self.store.pushpull(name, [local[name] for local in self.grads if name in local])
        return Loss(parts, on_host)

    def update(self) -> None:
        """Each device changes the weights of its stage."""
        for params, grads, momenta in zip(self.params, self.grads, self.momenta, strict=True):
            for number, name in enumerate(params):
                self.optimizer.update(number, params[name], grads[name], momenta[name])

    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch; each row computes its shard."""
        shares = [(row, X[here]) for row, here in enumerate(self.plan.rows_of(len(X)))]
        logits = [self.logits(row, share, training=False) for row, share in shares if len(share)]
        return numpy.concatenate([on_host(rows) for rows in logits])
