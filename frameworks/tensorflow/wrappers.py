"""TensorFlow's `MirroredStrategy`, which keeps a copy of each variable on every device.

What `tf.distribute` lacks is a function of a shard that is traced once for all devices.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import tensorflow as tf

from common.base.arrays import Weights
from frameworks.tensorflow.collectives import flatten
from frameworks.tensorflow.kernels import any_size
from frameworks.tensorflow.layouts import on_host, to_canonical

Tensor: TypeAlias = tf.Tensor
Strategy: TypeAlias = tf.distribute.Strategy
Variables = Mapping[str, tf.Variable]
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Mirrored:
    """A net and its variables by canonical names: the strategy has a copy on each device."""

    strategy: Strategy
    net: tf.keras.Model
    params: Variables
    statistics: Variables


def mirrored(devices: Sequence[str]) -> Strategy:
    """A strategy that adds up gradients on the first device."""
    # It adds up in the order of the devices, and the same way on CPUs and GPUs.
    return tf.distribute.MirroredStrategy(
        devices, cross_device_ops=tf.distribute.ReductionToOneDevice()
    )


@any_size
def step(
    X: Sequence[Tensor], y: Sequence[Tensor], examples: Tensor, loss: Loss, replicas: Mirrored
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
    batch = spread(X, strategy), spread(y, strategy)
    program = once_for_all(on_shard, variables, *batch, strategy=strategy)

    def on_device(*shard: Tensor) -> Any:
        shard_loss, grads, seen = program(*variables, *shard)
        for statistic, values in zip(replicas.statistics.values(), seen, strict=True):
            statistic.assign(values)
        return summed([shard_loss, grads])

    mean_loss, grads = strategy.run(on_device, batch)
    return copies(mean_loss, strategy)[0], grads


@any_size
def evaluate(X: Sequence[Tensor], replicas: Mirrored) -> tuple[Tensor, ...]:
    """The logits of each device's shard, by the first device's running statistics."""

    def on_shard(params: Variables, statistics: Variables, X: Tensor) -> Tensor:
        variables = [*params.values()], [*statistics.values()]
        return replicas.net.stateless_call(*variables, X, training=False)[0]

    strategy, variables = replicas.strategy, (replicas.params, replicas.statistics)
    batch = spread(X, strategy)
    program = once_for_all(on_shard, variables, batch, strategy=strategy)
    first = on_one(replicas.statistics, strategy, 0)
    logits = strategy.run(lambda shard: program(replicas.params, first, shard), (batch,))
    return copies(logits, strategy)


def once_for_all(
    function: Callable[..., Any],
    variables: Sequence[Variables],
    *batch: tf.distribute.DistributedValues,
    strategy: Strategy,
) -> Callable[..., Any]:
    """A function of variables and a shard, to be called on every device, but traced only here.

    In `strategy.run`, TensorFlow would trace it for each device.
    """
    specs = [
        {name: tf.TensorSpec(value.shape, value.dtype) for name, value in values.items()}
        for values in variables
    ]
    shards = zip(*(copies(part, strategy) for part in batch), strict=True)
    # Two at most: one for shards of any length, which is None, and one for empty shards.
    programs = {
        length: tf.function(function, autograph=False).get_concrete_function(*specs, *shard)
        for length, shard in {shard[0].shape[0]: shard for shard in shards}.items()
    }

    def call(*args: Any) -> Any:
        return programs[args[-1].shape[0]](*args)

    return call


def spread(shards: Sequence[Tensor], strategy: Strategy) -> tf.distribute.DistributedValues:
    """Shards, each on its device; those that are left for the last devices are empty."""
    empty = tf.zeros((0, *shards[0].shape[1:]), shards[0].dtype)
    filled = [*shards, *[empty] * (strategy.num_replicas_in_sync - len(shards))]
    return strategy.experimental_distribute_values_from_function(
        lambda context: filled[context.replica_id_in_sync_group]
    )


def summed(values: Sequence[Tensor]) -> Sequence[Tensor]:
    """The sums of tensors over all devices, on each of them; all devices have to call it."""

    def everyones(strategy: Strategy, values: Sequence[Tensor]) -> list[Tensor]:
        total = tf.distribute.ReduceOp.SUM
        return [strategy.extended.reduce_to(total, value, value) for value in values]

    found: Sequence[Tensor] = tf.distribute.get_replica_context().merge_call(
        everyones, args=(values,)
    )
    return found


def copies(value: tf.Variable | Tensor, strategy: Strategy) -> tuple[tf.Variable | Tensor, ...]:
    """What each device has of a value."""
    found: tuple[tf.Variable | Tensor, ...] = strategy.experimental_local_results(value)
    return found


def on_one(values: Variables, strategy: Strategy, index: int) -> Variables:
    """What one of the devices has of each value."""
    return {name: copies(value, strategy)[index] for name, value in values.items()}


def copy_of(values: Mapping[str, tf.Variable | Tensor], index: int, strategy: Strategy) -> Weights:
    """What one of the devices has of values by canonical names: copies on the host."""
    found = on_one(values, strategy, index)
    return {name: to_canonical(name, on_host(value)) for name, value in found.items()}


def everyones(replicas: Mirrored) -> tuple[list[Weights], list[Weights]]:
    """What each device has: weights and running statistics, by canonical names."""
    indices, strategy = range(replicas.strategy.num_replicas_in_sync), replicas.strategy
    params = [copy_of(replicas.params, index, strategy) for index in indices]
    return params, [copy_of(replicas.statistics, index, strategy) for index in indices]
