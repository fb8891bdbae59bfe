"""Gluon's Trainer, which adds up all devices' gradients in a kvstore."""

from functools import partial

import mxnet as mx
from mxnet import gluon, npx

from common.models.nets import trainable
from frameworks.mxnet.collectives import flatten, summed_by, unflatten
from frameworks.mxnet.hosts import ENGINE, all_gather_tensors, common_store, processes
from frameworks.mxnet.layouts import Tensor
from frameworks.mxnet.optimizer import SGD


class TrainerOverHosts(gluon.Trainer):  # type: ignore[misc]
    """A trainer that sums all hosts' gradients in a kvstore of this process, as one host does."""

    def __init__(self, params: gluon.ParameterDict, optimizer: SGD, kvstore: str) -> None:
        super().__init__(params, optimizer, kvstore=None)
        self.summed = partial(summed_by, kvstore)

    def _allreduce_grads(self) -> None:
        trained = [param for param in self._params if param.grad_req != "null"]
        local = [{param.name: param.grad(ctx) for param in trained} for ctx in self._contexts]
        total = self.summed(all_gather_tensors([flatten(grads) for grads in local]))[0]
        for grads in local:
            for name, part in unflatten(total, grads).items():
                part.copyto(grads[name])


class TrainerByServers(gluon.Trainer):  # type: ignore[misc]
    """A trainer whose gradients servers add up, once they have sent the first weights back.

    By itself it asks for both at once, and may get a sum as a weight.
    """

    def _init_params(self) -> None:
        super()._init_params()
        npx.waitall()


def trainer_of(net: gluon.Block, kvstore: str) -> gluon.Trainer:
    """A trainer of the net on all devices, that adds up in this kvstore."""
    params = net.collect_params()
    if processes() > 1 and kvstore != ENGINE:
        return TrainerOverHosts(params, SGD(), kvstore)
    # `gradients` reads what the kvstore summed, so the update must not happen in there.
    if kvstore == ENGINE:
        return TrainerByServers(params, SGD(), kvstore=common_store(), update_on_kvstore=False)
    return gluon.Trainer(params, SGD(), kvstore=kvstore, update_on_kvstore=False)


def no_loss(net: gluon.Block, device: mx.Context) -> Tensor:
    """Zero, for a device without examples: the trainer wants a new gradient from each device."""
    params = net.collect_params().items()
    return sum(0 * param.data(device).sum() for name, param in params if trainable(name))
