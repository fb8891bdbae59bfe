"""ResNet-18 on several devices with Gluon's Trainer.

python -m frameworks.mxnet.concise --devices 2 --preset quick
"""

if __name__ == "__main__":  # before MXNet is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("mxnet", "concise"))

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from common.base.arrays import Array, on_host
from frameworks.mxnet import kernels
from frameworks.mxnet.batch_norm import share_statistics
from frameworks.mxnet.layouts import Shards, Tensor, from_canonical
from frameworks.mxnet.resnet import ResNet18, resnet18
from frameworks.mxnet.wrappers import no_loss, trainer_of

Device: TypeAlias = mx.Context


@dataclass(frozen=True)
class Replicas:
    """The net, with parameters on all devices, and the trainer that sums their gradients."""

    net: ResNet18
    trainer: gluon.Trainer
    devices: Sequence[Device]


def replicate(
    weights: Mapping[str, Array], devices: Sequence[Device], batch_norm: str, wrapper: str
) -> Replicas:
    """ResNet-18 with these weights, on all devices; `wrapper` is the trainer's kvstore."""
    net = resnet18(len(weights["conv1.bias"]), batch_norm, weights["fc.bias"].dtype)
    net.initialize(mx.init.Zero(), ctx=list(devices))
    params = net.collect_params()
    for name, values in weights.items():
        params[name].set_data(mx.np.array(from_canonical(name, values), values.dtype))
    # With static_shape, too, devices were seen to end with different running statistics.
    net.hybridize(static_alloc=True)
    return Replicas(net, trainer_of(net, wrapper), devices)


def scatter(batch: Array, replicas: Replicas) -> Shards:
    """The shards of a minibatch, each on its device; the last devices may get none."""
    return kernels.scatter(batch, replicas.devices[: len(batch)])


loss = gluon.loss.SoftmaxCrossEntropyLoss()


def forward_backward(X: Array, y: Array, replicas: Replicas, examples: int) -> Tensor:
    """The mean loss over the minibatch; each device keeps the gradient of its shard's sum."""
    with autograd.record():
        logits = replicas.net(scatter(X, replicas))
        pairs = zip(logits, scatter(y, replicas), strict=True)
        losses = [loss(y_hat, y_shard).sum() for y_hat, y_shard in pairs]
        nothing = [no_loss(replicas.net, device) for device in replicas.devices[len(losses) :]]
    autograd.backward(losses + nothing)
    first = replicas.devices[0]
    return sum(shard_loss.as_in_ctx(first) for shard_loss in losses + nothing) / examples


def train_batch(X: Array, y: Array, replicas: Replicas, lr: float, examples: int) -> Tensor:
    """One step of SGD on a minibatch of `examples`; returns its mean loss, still on the device."""
    mean_loss = forward_backward(X, y, replicas, examples)
    replicas.trainer.set_learning_rate(lr)
    replicas.trainer.step(examples)
    return mean_loss


def predict(X: Array, replicas: Replicas) -> Array:
    """The logits (n, 10) of these examples, by the first device's running statistics."""
    share_statistics(replicas.net)
    logits = replicas.net(scatter(X, replicas))
    return np.concatenate([*map(on_host, logits)])
