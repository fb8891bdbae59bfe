"""ResNet-18 on several devices with JAX's own parallelism, Flax and Optax.

python -m frameworks.jax.concise --devices 2 --preset quick
"""

if __name__ == "__main__":  # before JAX is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("jax", "concise"))

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import jax
import numpy as np
import optax
from flax import nnx
from jax import Array as Tensor
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from common.base.arrays import Array
from common.parallel.shards import shard_bounds, shard_sizes
from frameworks.jax.hosts import all_devices, gathered
from frameworks.jax.layouts import AXIS, State, lay_out_each
from frameworks.jax.optimizer import sgd
from frameworks.jax.resnet import resnet18
from frameworks.jax.wrappers import Graph, Shards, Step, chosen, evaluate

Device: TypeAlias = jax.Device


@jax.tree_util.register_dataclass
@dataclass
class Replicas:
    """The parameters, on every device or split, and every device's own statistics, as (k, ...)."""

    params: State
    statistics: State
    graph: Graph = field(metadata={"static": True})
    mesh: Mesh = field(metadata={"static": True})
    wrapper: str = field(metadata={"static": True})


def replicate(
    weights: Mapping[str, Array], devices: Sequence[Device], batch_norm: str, wrapper: str
) -> Replicas:
    """ResNet-18 with these weights, on all devices: its parts are laid out over the mesh."""
    mesh = Mesh(all_devices(devices), (AXIS,))
    net = nnx.eval_shape(lambda: resnet18(len(weights["conv1.bias"]), batch_norm))
    params, statistics = nnx.state(net, nnx.Param), nnx.state(net, nnx.BatchStat)
    per_device, split = [weights] * mesh.size, wrapper == "zero3"
    params, statistics = lay_out_each(per_device, params, statistics, mesh, split)
    return Replicas(params, statistics, nnx.graphdef(net), mesh, wrapper)


def scatter(batch: Array, replicas: Replicas, examples: int) -> Tensor:
    """The shards of a minibatch of `examples`, each on its device, padded with zeros."""
    bounds = shard_bounds(len(batch), replicas.mesh.local_mesh.size)
    size = max(shard_sizes(examples, replicas.mesh.size))
    padded = np.zeros((len(bounds), size, *batch.shape[1:]), batch.dtype)
    for shard, (a, b) in zip(padded, bounds, strict=True):
        shard[: b - a] = batch[a:b]
    layout = NamedSharding(replicas.mesh, P(AXIS))
    shards: Tensor = jax.make_array_from_process_local_data(layout, padded)
    return shards


loss = optax.softmax_cross_entropy_with_integer_labels


def shard_loss(
    graph: Graph, params: State, statistics: State, shard: Shards
) -> tuple[Tensor, State]:
    """A shard's part of the mean loss over the minibatch, and its running statistics after it."""
    X, y, mask = shard
    net = nnx.merge(graph, params, statistics, copy=True)
    total = (loss(net(X, mask), y) * mask).sum()
    return total / jax.lax.psum(mask.sum(), AXIS), nnx.state(net, nnx.BatchStat)


@partial(jax.jit, static_argnums=0)
def one_program(mesh: Mesh, graph: Graph, params: State, statistics: State, shards: Shards) -> Step:
    """One program for the whole minibatch: the compiler finds the collectives its layout needs."""
    # Between processes gloo chooses the order of its sums.

    @partial(jax.value_and_grad, has_aux=True)
    def mean_loss(params: State) -> tuple[Tensor, State]:
        every_part = jax.vmap(partial(shard_loss, graph), (None, 0, 0), axis_name=AXIS)
        parts, seen = every_part(params, statistics, shards)
        return parts.sum(), seen

    (value, seen), grads = mean_loss(params)
    whole_copy, sharded = NamedSharding(mesh, P()), NamedSharding(mesh, P(AXIS))
    step: Step = jax.lax.with_sharding_constraint(
        (value, grads, seen), (whole_copy, whole_copy, sharded)
    )
    return step


def forward_backward(X: Array, y: Array, replicas: Replicas, examples: int) -> Step:
    """The mean loss over the minibatch, its gradient, and the running statistics after it."""
    mask = np.ones(len(X), X.dtype)  # it is padded with zeros, as the examples are
    shard = partial(scatter, replicas=replicas, examples=examples)
    net = replicas.graph, replicas.params, replicas.statistics
    program = chosen(replicas.wrapper, one_program, shard_loss)
    return program(replicas.mesh, *net, (shard(X), shard(y), shard(mask)))


def train_batch(X: Array, y: Array, replicas: Replicas, lr: float, examples: int) -> Tensor:
    """One step of SGD on a minibatch of `examples`; returns its mean loss, still on the device."""
    mean_loss, grads, replicas.statistics = forward_backward(X, y, replicas, examples)
    replicas.params = sgd(replicas.params, grads, lr)
    return mean_loss


def predict(X: Array, replicas: Replicas) -> Array:
    """The logits (n, 10) of this process's examples, by the first device's running statistics."""
    net = replicas.graph, replicas.params, replicas.statistics
    examples = int(gathered(np.array([len(X)])).sum())  # of all processes
    logits = evaluate(replicas.mesh, *net, scatter(X, replicas, examples))
    sizes = shard_sizes(len(X), replicas.mesh.local_mesh.size)
    shards = zip(logits.addressable_shards, sizes, strict=True)
    return np.concatenate([np.asarray(shard.data)[0, :size] for shard, size in shards])
