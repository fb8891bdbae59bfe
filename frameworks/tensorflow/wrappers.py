"""Steps under a strategy of `tf.distribute`, which keeps a copy of variables on every device."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import tensorflow as tf

from common.base.arrays import Weights, on_host
from frameworks.tensorflow.collectives import flatten, unflatten
from frameworks.tensorflow.hosts import all_gather, processes
from frameworks.tensorflow.kernels import any_size
from frameworks.tensorflow.layouts import to_canonical

Tensor: TypeAlias = tf.Tensor
Strategy: TypeAlias = tf.distribute.Strategy
Variables = Mapping[str, tf.Variable]


@dataclass(frozen=True, eq=False)
class Mirrored:
    """A net and its variables by canonical names: the strategy has a copy on each device."""

    strategy: Strategy
    net: tf.keras.Model
    params: Variables
    statistics: Variables


@any_size
def evaluate(X: Sequence[Tensor], replicas: Mirrored) -> tuple[Tensor, ...]:
    """The logits of each device's shard, by the first device's running statistics."""

    def on_shard(params: Variables, statistics: Variables, X: Tensor) -> Tensor:
        variables = [*params.values()], [*statistics.values()]
        return replicas.net.stateless_call(*variables, X, training=False)[0]

    strategy, variables = replicas.strategy, (replicas.params, replicas.statistics)
    batch = spread(X, tf.zeros((0, 1, 28, 28), replicas.params["fc.bias"].dtype), strategy)
    program = once_for_all(on_shard, variables, batch, strategy=strategy)
    first = on_first(replicas.statistics, strategy)
    logits = strategy.run(lambda shard: program(replicas.params, first, shard), (batch,))
    return copies(logits, strategy)


def once_for_all(
    function: Callable[..., Any],
    variables: Sequence[Variables],
    *batch: tf.distribute.DistributedValues,
    strategy: Strategy,
) -> Callable[..., Any]:
    """A function of variables and a shard, traced once: `strategy.run` traces for each device."""
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


def spread(
    shards: Sequence[Tensor], empty: Tensor, strategy: Strategy
) -> tf.distribute.DistributedValues:
    """The shards of this process, each on its device; the last devices may get an `empty` one."""
    here = strategy.num_replicas_in_sync // processes()
    filled = [*shards, *[empty] * (here - len(shards))]
    return strategy.experimental_distribute_values_from_function(
        lambda context: filled[context.replica_id_in_sync_group % here]
    )


def summed(values: Sequence[Tensor]) -> Sequence[Tensor]:
    """The sums of tensors over all devices, on each of them; all devices have to call it."""

    def all_reduce(strategy: Strategy, values: Sequence[Tensor]) -> list[Tensor]:
        total = tf.distribute.ReduceOp.SUM
        return [strategy.extended.reduce_to(total, value, value) for value in values]

    sums: Sequence[Tensor] = tf.distribute.get_replica_context().merge_call(
        all_reduce, args=(values,)
    )
    return sums


def copies(value: tf.Variable | Tensor, strategy: Strategy) -> tuple[tf.Variable | Tensor, ...]:
    """A value's local part on each device."""
    local: tuple[tf.Variable | Tensor, ...] = strategy.experimental_local_results(value)
    return local


def on_one(values: Variables, strategy: Strategy, index: int) -> Variables:
    """Each value's local part on one device."""
    return {name: copies(value, strategy)[index] for name, value in values.items()}


def on_first(values: Variables, strategy: Strategy) -> Variables | Mapping[str, Tensor]:
    """Each value's local part on the first device."""
    local = on_one(values, strategy, 0)
    if processes() == 1:
        return local
    return unflatten(all_gather(flatten(local))[0], local)


def copy_of(values: Mapping[str, tf.Variable | Tensor], index: int, strategy: Strategy) -> Weights:
    """Copies on the host of one device's values, by canonical names."""
    local = on_one(values, strategy, index)
    return {name: to_canonical(name, on_host(value)) for name, value in local.items()}
