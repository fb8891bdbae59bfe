"""Gluon's Trainer, which adds up all devices' gradients in a kvstore."""

import mxnet as mx
from mxnet import gluon

from common.models.nets import trainable
from frameworks.mxnet.layouts import Tensor
from frameworks.mxnet.optimizer import SGD


def trainer_of(net: gluon.Block, kvstore: str) -> gluon.Trainer:
    """A trainer of the net on all devices, that adds up in this kvstore."""
    # `gradients` reads what the kvstore summed, so the update must not happen in there.
    return gluon.Trainer(net.collect_params(), SGD(), kvstore=kvstore, update_on_kvstore=False)


def no_loss(net: gluon.Block, device: mx.Context) -> Tensor:
    """Zero, for a device without examples: the trainer wants a new gradient from each device."""
    params = net.collect_params().items()
    return sum(0 * param.data(device).sum() for name, param in params if trainable(name))
