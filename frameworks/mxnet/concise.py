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

from common.base.arrays import Array, Weights
from common.chapters.concise import ConciseOptions
from common.models.nets import trainable
from common.parallel.shards import same_everywhere, saved_of, shard_bounds
from frameworks.mxnet.activations import layer_outputs
from frameworks.mxnet.batch_norm import share_statistics, unmoved_statistics
from frameworks.mxnet.devices import devices as devices, synchronize as synchronize
from frameworks.mxnet.hosts import (
    everyones,
    everywhere,
    joined,
    launch as launch,
    own,
    same_on_every_host,
)
from frameworks.mxnet.layouts import (
    Shards,
    Tensor,
    from_canonical,
    on_host,
    own_weights,
    to_canonical,
)
from frameworks.mxnet.resnet import ResNet18, resnet18
from frameworks.mxnet.wrappers import everyones_shards, no_loss, trainer_of

Device: TypeAlias = mx.Context


@dataclass(frozen=True)
class Replicas:
    """The net, whose parameters lie on all devices, and the trainer that sums their gradients."""

    net: ResNet18
    trainer: gluon.Trainer
    devices: Sequence[Device]


def replicate(
    weights: Mapping[str, Array], devices: Sequence[Device], options: ConciseOptions
) -> Replicas:
    """ResNet-18 with these weights, on all devices; `wrapper` is the trainer's kvstore."""
    net = resnet18(len(weights["conv1.bias"]), options.batch_norm, weights["fc.bias"].dtype)
    net.initialize(mx.init.Zero(), ctx=list(devices))
    params = net.collect_params()
    for name, values in weights.items():
        params[name].set_data(mx.np.array(from_canonical(name, values), values.dtype))
    # With static_shape, too, devices were seen to end with different running statistics.
    net.hybridize(static_alloc=True)
    return Replicas(net, trainer_of(net, options.wrapper), devices)


def scatter(batch: Array, replicas: Replicas) -> Shards:
    """The shards of a minibatch, each on its device; the last devices may get none."""
    bounds = own(shard_bounds(len(batch), everywhere(replicas.devices)))
    return [
        mx.np.array(batch[a:b], batch.dtype, ctx=device)
        for (a, b), device in zip(bounds, replicas.devices, strict=True)
        if b > a
    ]


loss = gluon.loss.SoftmaxCrossEntropyLoss()


def forward_backward(X: Array, y: Array, replicas: Replicas) -> Tensor:
    """The mean loss over the minibatch; each device keeps the gradient of its shard's sum."""
    with autograd.record():
        logits = replicas.net(scatter(X, replicas))
        pairs = zip(logits, scatter(y, replicas), strict=True)
        losses = [loss(y_hat, y_shard).sum() for y_hat, y_shard in pairs]
        nothing = [no_loss(replicas.net, device) for device in replicas.devices[len(losses) :]]
    autograd.backward(losses + nothing)
    first, shard_losses = replicas.devices[0], everyones(losses + nothing)
    return sum(shard_loss.as_in_ctx(first) for shard_loss in shard_losses) / len(X)


def train_batch(
    X: Array,
    y: Array,
    replicas: Replicas,
    devices: Sequence[Device],
    lr: float,
    options: ConciseOptions,
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the device."""
    mean_loss = forward_backward(X, y, replicas)
    replicas.trainer.set_learning_rate(lr)
    replicas.trainer.step(len(X))
    return mean_loss


def gradients(
    X: Array, y: Array, replicas: Replicas, devices: Sequence[Device], options: ConciseOptions
) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    with unmoved_statistics(replicas.net):
        forward_backward(X, y, replicas)
    replicas.trainer.allreduce_grads()
    params = {k: p for k, p in replicas.net.collect_params().items() if trainable(k)}
    grads = {name: param.grad(devices[0]) for name, param in params.items()}
    return {name: to_canonical(name, on_host(grad) / len(X)) for name, grad in grads.items()}


def predict_shards(X: Array, replicas: Replicas) -> Shards:
    """The logits of each device's shard, by the first device's running statistics."""
    share_statistics(replicas.net)
    return everyones_shards(replicas.net(scatter(X, replicas)), X.dtype)


def predict(X: Array, replicas: Replicas, devices: Sequence[Device]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    return np.concatenate([on_host(shard) for shard in predict_shards(X, replicas)])


def export(replicas: Replicas) -> Weights:
    """Weights and the first device's running statistics; checks that all replicas are the same."""
    share_statistics(replicas.net)
    dtype = replicas.net.fc.bias.dtype  # that of the statistics may be another
    params = replicas.net.collect_params()
    copies = [own_weights(params, device) for device in replicas.devices]
    return same_on_every_host(
        same_everywhere([{k: v.astype(dtype) for k, v in copy.items()} for copy in copies]),
        len(copies),
    )


def save(replicas: Replicas) -> Weights:
    """All that the next step depends on: the weights, and every device's running statistics."""
    params = replicas.net.collect_params()
    copies = [own_weights(params, device) for device in replicas.devices]
    names = copies[0].keys()
    trained = [{name: copy[name] for name in names if trainable(name)} for copy in copies]
    stacks = {n: joined(np.stack([copy[n] for copy in copies])) for n in names if not trainable(n)}
    return same_on_every_host(same_everywhere(trained), len(copies)) | stacks


def restore(saved: Mapping[str, Array], replicas: Replicas, devices: Sequence[Device]) -> None:
    """Puts all replicas where `save` found others."""
    for index, device in zip(own(range(everywhere(devices))), devices, strict=True):
        copy = saved_of(saved, index)
        for name, param in replicas.net.collect_params().items():
            values = from_canonical(name, copy[name])
            param.data(device)[:] = mx.np.array(values, values.dtype, ctx=device)


def activations(X: Array, replicas: Replicas, devices: Sequence[Device]) -> Weights:
    """What each layer with weights makes of a batch on one device, by its name."""
    return layer_outputs(X, replicas.net, devices[0])
