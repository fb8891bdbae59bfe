"""ResNet-18 on several devices with Gluon's Trainer.

python -m frameworks.mxnet.concise --devices 2 --preset quick
"""

if __name__ == "__main__":  # before MXNet is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("mxnet", "concise"))

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mxnet as mx
import numpy
from mxnet import autograd, gluon, np, npx

from common.backends.launch import launch as launch
from common.base.arrays import Array, Weights
from common.models.nets import trainable
from common.parallel.shards import same_everywhere, shard_bounds
from frameworks.mxnet.devices import devices as devices
from frameworks.mxnet.layers import activations as activations
from frameworks.mxnet.resnet import ResNet18, Shards, Tensor, resnet18


@dataclass(frozen=True)
class Replicas:
    """The net, whose parameters lie on all devices, and the trainer that sums their gradients."""

    net: ResNet18
    trainer: gluon.Trainer


class SGD(mx.optimizer.Optimizer):  # type: ignore[misc]
    """Stochastic gradient descent: MXNet's own rounds learning rates to single precision."""

    def create_state(self, index: int, weight: Tensor) -> None:
        """Without momentum there is no state."""

    def update(self, index: int, weight: Tensor, grad: Tensor, state: None) -> None:
        """One step for one parameter, in place."""
        weight -= (self.learning_rate * self.rescale_grad) * grad


def replicate(
    weights: Mapping[str, Array],
    devices: Sequence[mx.Context],
    /,
    *,
    batch_norm: str = "per-device",
    wrapper: str = "device",
) -> Replicas:
    """ResNet-18 with these weights on all devices; `wrapper` is the trainer's kvstore."""
    net = resnet18(len(weights["conv1.bias"]), batch_norm, weights["fc.bias"].dtype)
    net.initialize(mx.init.Zero(), ctx=list(devices))
    params = net.collect_params()
    for name, values in weights.items():
        params[name].set_data(np.array(turned(name, values), values.dtype))
    # With static_shape, too, devices were seen to end with different running statistics.
    net.hybridize(static_alloc=True)
    # `gradients` reads what the kvstore summed, so the update must not happen in there.
    trainer = gluon.Trainer(params, SGD(), kvstore=wrapper, update_on_kvstore=False)
    return Replicas(net, trainer)


loss = gluon.loss.SoftmaxCrossEntropyLoss()


def turned(name: str, values: Array) -> Array:
    """An array from canonical layout to Gluon's, or back: dense layers are (out, in) there."""
    return values.T if name == "fc.weight" else values


def split_batch(batch: Array, devices: Sequence[mx.Context]) -> Shards:
    """The shards of a minibatch, each on its device; the last devices may get none."""
    bounds = shard_bounds(len(batch), len(devices))
    return [
        np.array(batch[a:b], batch.dtype, ctx=device)
        for (a, b), device in zip(bounds, devices, strict=True)
        if b > a
    ]


def forward_backward(
    X: Array, y: Array, replicas: Replicas, devices: Sequence[mx.Context]
) -> Tensor:
    """The mean loss over the minibatch; each device keeps the gradient of its shard's sum."""
    with autograd.record():
        logits = replicas.net(split_batch(X, devices))
        pairs = zip(logits, split_batch(y, devices), strict=True)
        losses = [loss(y_hat, y_shard).sum() for y_hat, y_shard in pairs]
        nothing = [no_loss(replicas.net, device) for device in devices[len(losses) :]]
    autograd.backward(losses + nothing)
    return sum(shard_loss.as_in_ctx(devices[0]) for shard_loss in losses) / len(X)


def no_loss(net: ResNet18, device: mx.Context) -> Tensor:
    """Zero, for a device without examples: the trainer wants a new gradient from each device."""
    params = net.collect_params().items()
    return sum(0 * param.data(device).sum() for name, param in params if trainable(name))


def train_batch(
    X: Array, y: Array, replicas: Replicas, devices: Sequence[mx.Context], lr: float
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the first device."""
    mean_loss = forward_backward(X, y, replicas, devices)
    replicas.trainer.set_learning_rate(lr)
    replicas.trainer.step(len(X))
    return mean_loss


def gradients(X: Array, y: Array, replicas: Replicas, devices: Sequence[mx.Context]) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    before = [(values, values.copy()) for values in statistics(replicas)]
    forward_backward(X, y, replicas, devices)
    for values, kept in before:
        values[:] = kept
    replicas.trainer.allreduce_grads()
    return {
        name: turned(name, param.grad(devices[0]).asnumpy() / len(X))
        for name, param in replicas.net.collect_params().items()
        if trainable(name)
    }


def statistics(replicas: Replicas) -> list[Tensor]:
    """The running statistics on all devices: a backward pass moves them."""
    params = replicas.net.collect_params().items()
    return [values for name, p in params if not trainable(name) for values in p.list_data()]


def predict(X: Array, replicas: Replicas, devices: Sequence[mx.Context]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    share_statistics(replicas)
    logits = replicas.net(split_batch(X, devices))
    return numpy.concatenate([shard.asnumpy() for shard in logits])


def share_statistics(replicas: Replicas) -> None:
    """Gives every device the running statistics of the first one."""
    for name, param in replicas.net.collect_params().items():
        if not trainable(name):
            param.set_data(param.list_data()[0])


def export(replicas: Replicas) -> Weights:
    """Weights and the first device's running statistics; checks that all replicas are the same."""
    share_statistics(replicas)
    dtype = replicas.net.fc.bias.dtype
    copies = [
        [(name, turned(name, values.asnumpy().astype(dtype))) for values in param.list_data()]
        for name, param in replicas.net.collect_params().items()
    ]
    return same_everywhere([dict(copy) for copy in zip(*copies, strict=True)])


def synchronize(replicas: Replicas) -> None:
    """Returns once all queued work is done, on every device."""
    npx.waitall()
