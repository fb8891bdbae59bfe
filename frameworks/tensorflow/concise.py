"""ResNet-18 on several devices with `tf.distribute.MirroredStrategy`.

python -m frameworks.tensorflow.concise --devices 2 --preset quick
"""

if __name__ == "__main__":  # before TensorFlow is loaded: --help is answered at once
    from common.training.cli import main

    raise SystemExit(main("tensorflow", "concise"))

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from common.base.arrays import Array, on_host
from common.models.nets import trainable
from common.parallel.shards import shard_bounds
from frameworks.tensorflow.collectives import flatten
from frameworks.tensorflow.distribution import mirrored
from frameworks.tensorflow.hosts import processes
from frameworks.tensorflow.kernels import any_size
from frameworks.tensorflow.layouts import from_canonical
from frameworks.tensorflow.optimizer import SGD
from frameworks.tensorflow.resnet import named_variables, resnet18
from frameworks.tensorflow.wrappers import (
    Mirrored,
    Variables,
    copies,
    evaluate,
    once_for_all,
    spread,
    summed,
)

Device = str
Tensor: TypeAlias = tf.Tensor


@dataclass(frozen=True, eq=False)
class Replicas(Mirrored):
    """The net and its variables, which have a copy on each device, and the optimizer."""

    optimizer: SGD


def replicate(
    weights: Mapping[str, Array], devices: Sequence[Device], batch_norm: str, wrapper: str
) -> Replicas:
    """ResNet-18 with these weights, on all devices."""
    strategy = mirrored(devices)
    with strategy.scope():
        net = resnet18(len(weights["conv1.bias"]), batch_norm, weights["fc.bias"].dtype.name)
        variables = named_variables(net)
        for name, variable in variables.items():
            variable.assign(from_canonical(name, weights[name]))
    params = {name: variable for name, variable in variables.items() if trainable(name)}
    statistics = {name: variable for name, variable in variables.items() if name not in params}
    return Replicas(strategy, net, params, statistics, SGD(strategy, params))


def scatter(batch: Array, replicas: Replicas) -> list[Array]:
    """The shards of this process's examples, one for each device; the last may get none."""
    bounds = shard_bounds(len(batch), replicas.strategy.num_replicas_in_sync // processes())
    return [batch[a:b] for a, b in bounds if b > a]


def loss(y_hat: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy (n,) of each example, from its logits (n, 10) and class (n,)."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=y_hat)


@any_size
def step(
    X: Sequence[Tensor], y: Sequence[Tensor], examples: Tensor, replicas: Mirrored
) -> tuple[Tensor, Tensor]:
    """The mean loss over all `examples` of a minibatch, and on each device its gradient, flat."""

    def on_shard(params: Variables, statistics: Variables, X: Tensor, y: Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(params)
            variables = [*params.values()], [*statistics.values()]
            y_hat, seen = replicas.net.stateless_call(*variables, X, training=True)
            shard_loss = tf.reduce_sum(loss(y_hat, y)) / examples
        return shard_loss, flatten(tape.gradient(shard_loss, params)), seen

    strategy, variables = replicas.strategy, (replicas.params, replicas.statistics)
    images = spread(X, tf.zeros((0, 1, 28, 28), examples.dtype), strategy)
    batch = images, spread(y, tf.zeros(0, tf.int64), strategy)
    program = once_for_all(on_shard, variables, *batch, strategy=strategy)

    def on_device(*shard: Tensor) -> Any:
        shard_loss, grads, seen = program(*variables, *shard)
        for statistic, values in zip(replicas.statistics.values(), seen, strict=True):
            statistic.assign(values)
        return summed([shard_loss, grads])

    mean_loss, grads = strategy.run(on_device, batch)
    return copies(mean_loss, strategy)[0], grads


def forward_backward(
    X: Array, y: Array, replicas: Replicas, examples: int
) -> tuple[Tensor, Tensor]:
    """The mean loss over the minibatch, and on each device its gradient as one vector."""
    shards = scatter(X, replicas), scatter(y, replicas)
    found: tuple[Tensor, Tensor] = step(*shards, np.array(examples, X.dtype), replicas)
    return found


def train_batch(X: Array, y: Array, replicas: Replicas, lr: float, examples: int) -> Tensor:
    """One step of SGD on a minibatch of `examples`; returns its mean loss, still on the device."""
    mean_loss, grads = forward_backward(X, y, replicas, examples)
    # As a number the rate would be compiled in: a new one would mean a new program.
    replicas.optimizer.apply(grads, tf.constant(lr, X.dtype))
    return mean_loss


def predict(X: Array, replicas: Replicas) -> Array:
    """The logits (n, 10) of this process's examples, by the first device's running statistics."""
    logits = evaluate(scatter(X, replicas), replicas)
    return np.concatenate([on_host(shard) for shard in logits])
