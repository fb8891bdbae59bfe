"""ResNet-18 on several devices with `tf.distribute.MirroredStrategy`.

python -m frameworks.tensorflow.concise --devices 2 --preset quick
"""

if __name__ == "__main__":  # before TensorFlow is loaded: --help is answered at once
    from common.training.cli import main

    raise SystemExit(main("tensorflow", "concise"))

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from common.base.arrays import Array, Weights
from common.chapters.concise import ConciseOptions
from common.models.nets import trainable
from common.parallel.shards import same_everywhere, saved_of, shard_bounds
from frameworks.tensorflow.activations import layer_outputs
from frameworks.tensorflow.batch_norm import unmoved_statistics
from frameworks.tensorflow.collectives import unflatten
from frameworks.tensorflow.devices import devices as devices, synchronize as synchronize
from frameworks.tensorflow.hosts import same_on_every_host
from frameworks.tensorflow.layouts import from_canonical, on_host, to_canonical
from frameworks.tensorflow.optimizer import SGD
from frameworks.tensorflow.resnet import named_variables, resnet18
from frameworks.tensorflow.strategies import launch as launch, mirrored
from frameworks.tensorflow.wrappers import (
    Mirrored,
    copies,
    evaluate,
    everyones,
    first_here,
    gathered,
    on_one,
    step,
)

Device = str
Tensor: TypeAlias = tf.Tensor


@dataclass(frozen=True, eq=False)
class Replicas(Mirrored):
    """The net and its variables, which have a copy on each device, and the optimizer."""

    optimizer: SGD


def replicate(
    weights: Mapping[str, Array], devices: Sequence[Device], options: ConciseOptions
) -> Replicas:
    """ResNet-18 with these weights, on all devices."""
    strategy = mirrored(devices)
    with strategy.scope():
        net = resnet18(
            len(weights["conv1.bias"]), options.batch_norm, weights["conv1.bias"].dtype.name
        )
        variables = named_variables(net)
        for name, variable in variables.items():
            variable.assign(from_canonical(name, weights[name]))
    params = {name: variable for name, variable in variables.items() if trainable(name)}
    statistics = {name: variable for name, variable in variables.items() if name not in params}
    return Replicas(strategy, net, params, statistics, SGD(strategy, params))


def scatter(batch: Array, replicas: Replicas) -> list[Array]:
    """The shards of a minibatch, one for each device; the last devices may get none."""
    bounds = shard_bounds(len(batch), replicas.strategy.num_replicas_in_sync)
    return [batch[a:b] for a, b in bounds if b > a]


def loss(y_hat: Tensor, y: Tensor) -> Tensor:
    """The cross-entropy (n,) of each example, from its logits (n, 10) and class (n,)."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=y_hat)


def forward_backward(X: Array, y: Array, replicas: Replicas) -> tuple[Tensor, Tensor]:
    """The mean loss over the minibatch, and on each device its gradient as one vector."""
    shards = scatter(X, replicas), scatter(y, replicas)
    found: tuple[Tensor, Tensor] = step(*shards, np.array(len(X), X.dtype), loss, replicas)
    return found


def train_batch(
    X: Array,
    y: Array,
    replicas: Replicas,
    devices: Sequence[Device],
    lr: float,
    options: ConciseOptions,
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the device."""
    mean_loss, grads = forward_backward(X, y, replicas)
    # As a number the rate would be compiled in: a new one would mean a new program.
    replicas.optimizer.apply(grads, tf.constant(lr, X.dtype))
    return mean_loss


def gradients(
    X: Array, y: Array, replicas: Replicas, devices: Sequence[Device], options: ConciseOptions
) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    with unmoved_statistics(replicas.statistics, replicas.strategy):
        _, grads = forward_backward(X, y, replicas)
    first = unflatten(copies(grads, replicas.strategy)[0], replicas.params)
    return {name: to_canonical(name, on_host(grad)) for name, grad in first.items()}


def predict_shards(X: Array, replicas: Replicas) -> Sequence[Tensor]:
    """The logits of each device's shard, by the first device's running statistics."""
    shards = scatter(X, replicas)
    return gathered(evaluate(shards, replicas), [len(shard) for shard in shards], replicas.strategy)


def predict(X: Array, replicas: Replicas, devices: Sequence[Device]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    return np.concatenate([on_host(shard) for shard in predict_shards(X, replicas)])


def export(replicas: Replicas) -> Weights:
    """Weights and the first device's running statistics; checks that all replicas are the same."""
    params, statistics = everyones(replicas)
    return same_on_every_host(same_everywhere(params), replicas.strategy) | statistics[0]


def save(replicas: Replicas) -> Weights:
    """All that the next step depends on: the weights, and every device's running statistics."""
    params, statistics = everyones(replicas)
    stacks = {name: np.stack([own[name] for own in statistics]) for name in statistics[0]}
    return same_on_every_host(same_everywhere(params), replicas.strategy) | stacks


def restore(saved: Mapping[str, Array], replicas: Replicas, devices: Sequence[Device]) -> None:
    """Puts all replicas where `save` found others."""
    variables = {**replicas.params, **replicas.statistics}
    for index in range(len(devices)):
        own = saved_of(saved, first_here(replicas) + index)
        for name, variable in on_one(variables, replicas.strategy, index).items():
            variable.assign(from_canonical(name, own[name]).astype(variable.dtype.name))


def activations(X: Array, replicas: Replicas, devices: Sequence[Device]) -> Weights:
    """What each layer with weights makes of a batch on one device, by its name."""
    return layer_outputs(X, replicas.net, devices[0])
