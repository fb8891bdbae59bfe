"""ResNet-18 on several devices with JAX's own parallelism, Flax and Optax.

python -m frameworks.jax.concise --devices 2 --preset quick
"""

if __name__ == "__main__":  # before JAX is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("jax", "concise"))

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import jax
import numpy as np
import optax
from flax import nnx
from jax import Array as Tensor
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from common.backends.launch import launch as launch
from common.base.arrays import Array, Weights
from common.models.nets import trainable
from common.parallel.shards import same_everywhere, shard_bounds, shard_sizes
from frameworks.jax.devices import devices as devices
from frameworks.jax.devices import synchronize as synchronize
from frameworks.jax.layers import activations as activations
from frameworks.jax.resnet import AXIS, ResNet18, canonical, from_canonical, resnet18, to_canonical

State = nnx.State[str, nnx.Variable[Tensor]]
Shards = tuple[Tensor, Tensor, Tensor]
"""X, y and mask (1 for an example, 0 for padding), as (k, size of a shard, ...)."""
Step = tuple[Tensor, State, State]
"""The mean loss over a minibatch, its gradient, and the running statistics after it."""


@jax.tree_util.register_dataclass
@dataclass
class Replicas:
    """The parameters, on every device, and every device's own running statistics, as (k, ...)."""

    params: State
    statistics: State
    graph: nnx.GraphDef[ResNet18] = field(metadata={"static": True})
    mesh: Mesh = field(metadata={"static": True})
    wrapper: str = field(metadata={"static": True})


def replicate(
    weights: Mapping[str, Array],
    devices: Sequence[jax.Device],
    /,
    *,
    batch_norm: str = "per-device",
    wrapper: str = "sharding",
) -> Replicas:
    """ResNet-18 with these weights, laid out over the devices."""
    mesh = Mesh(devices, (AXIS,))
    net = nnx.eval_shape(lambda: resnet18(len(weights["conv1.bias"]), batch_norm))
    stacks = {k: np.stack([v] * len(devices)) for k, v in weights.items() if not trainable(k)}
    params = lay_out(nnx.state(net, nnx.Param), weights, NamedSharding(mesh, P()))
    statistics = lay_out(nnx.state(net, nnx.BatchStat), stacks, NamedSharding(mesh, P(AXIS)))
    return Replicas(params, statistics, nnx.graphdef(net), mesh, wrapper)


def lay_out(state: State, weights: Mapping[str, Array], sharding: NamedSharding) -> State:
    """The state with these weights; each device has memory of its own."""

    def filled(path: tuple[str, ...], variable: nnx.Variable[Tensor]) -> nnx.Variable[Tensor]:
        values = from_canonical(weights[canonical(path)])
        # On CPUs, device_put would let all devices go on using the memory of the array.
        copies = jax.make_array_from_callback(values.shape, sharding, lambda i: values[i].copy())
        return variable.replace(copies)

    return nnx.map_state(filled, state)


def split_batch(batch: Array, mesh: Mesh) -> Tensor:
    """A minibatch's k shards, each on its device, padded with zeros to the size of the first."""
    bounds = shard_bounds(len(batch), mesh.size)
    padded = np.zeros((mesh.size, bounds[0][1], *batch.shape[1:]), batch.dtype)
    for shard, (a, b) in zip(padded, bounds, strict=True):
        shard[: b - a] = batch[a:b]
    shards: Tensor = jax.device_put(padded, NamedSharding(mesh, P(AXIS)))
    return shards


loss = optax.softmax_cross_entropy_with_integer_labels


def shard_loss(
    graph: nnx.GraphDef[ResNet18], params: State, statistics: State, shard: Shards
) -> tuple[Tensor, State]:
    """A shard's part of the mean loss over the minibatch, and its running statistics after it."""
    X, y, mask = shard
    net = nnx.merge(graph, params, statistics, copy=True)
    total = (loss(net(X, mask), y) * mask).sum()
    return total / jax.lax.psum(mask.sum(), AXIS), nnx.state(net, nnx.BatchStat)


@jax.jit
def sharding(replicas: Replicas, shards: Shards) -> Step:
    """One program for the whole minibatch: the compiler finds the collectives its layout needs."""

    @partial(jax.value_and_grad, has_aux=True)
    def mean_loss(params: State) -> tuple[Tensor, State]:
        every_part = jax.vmap(partial(shard_loss, replicas.graph), (None, 0, 0), axis_name=AXIS)
        parts, seen = every_part(params, replicas.statistics, shards)
        return parts.sum(), seen

    (value, seen), grads = mean_loss(replicas.params)
    same, own = NamedSharding(replicas.mesh, P()), NamedSharding(replicas.mesh, P(AXIS))
    step: Step = jax.lax.with_sharding_constraint((value, grads, seen), (same, same, own))
    return step


@jax.jit
def shard_map(replicas: Replicas, shards: Shards) -> Step:
    """A program for each device, with the collectives spelled out."""
    inputs, outputs = (P(), P(AXIS), P(AXIS)), (P(), P(), P(AXIS))

    @jax.shard_map(mesh=replicas.mesh, in_specs=inputs, out_specs=outputs)
    def on_device(params: State, statistics: State, shards: Shards) -> Step:
        # The gradient of parameters that count as one for all devices would be summed already.
        params = jax.lax.pcast(params, AXIS, to="varying")
        statistics, shard = jax.tree.map(lambda stack: stack[0], (statistics, shards))
        part_and_grads = jax.value_and_grad(partial(shard_loss, replicas.graph), has_aux=True)
        (part, seen), grads = part_and_grads(params, statistics, shard)
        value, grads = jax.lax.psum((part, grads), AXIS)
        return value, grads, jax.tree.map(lambda statistic: statistic[None], seen)

    return on_device(replicas.params, replicas.statistics, shards)


WRAPPERS = {"sharding": sharding, "shard_map": shard_map}


def forward_backward(X: Array, y: Array, replicas: Replicas) -> Step:
    """The mean loss over the minibatch, its gradient, and the running statistics after it."""
    whole = (X, y, np.ones(len(X), X.dtype))
    shards = tuple(split_batch(each, replicas.mesh) for each in whole)
    step: Step = WRAPPERS[replicas.wrapper](replicas, shards)
    return step


@jax.jit
def sgd(params: State, grads: State, lr: float) -> State:
    """The parameters after one step of stochastic gradient descent."""
    optimizer = optax.sgd(lr)
    updates, _ = optimizer.update(grads, optimizer.init(params))
    stepped: State = optax.apply_updates(params, updates)
    return stepped


def train_batch(
    X: Array, y: Array, replicas: Replicas, devices: Sequence[jax.Device], lr: float
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the devices."""
    mean_loss, grads, replicas.statistics = forward_backward(X, y, replicas)
    replicas.params = sgd(replicas.params, grads, lr)
    return mean_loss


def gradients(X: Array, y: Array, replicas: Replicas, devices: Sequence[jax.Device]) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    _, grads, _ = forward_backward(X, y, replicas)
    return on_host(grads, 0)


@jax.jit
def logits(replicas: Replicas, X: Tensor) -> Tensor:
    """The logits (k, size, 10) of k shards, by the running statistics of the first device."""
    first = jax.tree.map(lambda stack: stack[0], replicas.statistics)
    return jax.vmap(nnx.merge(replicas.graph, replicas.params, first))(X)


def predict(X: Array, replicas: Replicas, devices: Sequence[jax.Device]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    padded = np.asarray(logits(replicas, split_batch(X, replicas.mesh)))
    sizes = shard_sizes(len(X), len(devices))
    return np.concatenate([shard[:n] for shard, n in zip(padded, sizes, strict=True)])


def on_host(state: State, index: int) -> Weights:
    """The copy of a state that lies on one of the devices, by canonical names."""
    return {
        canonical(path): to_canonical(np.array(variable[...].addressable_shards[index].data))
        for path, variable in nnx.to_flat_state(state)
    }


def export(replicas: Replicas) -> Weights:
    """Weights and the first device's running statistics; checks that all replicas are the same."""
    copies = [on_host(replicas.params, index) for index in range(replicas.mesh.size)]
    statistics = {name: stack[0] for name, stack in on_host(replicas.statistics, 0).items()}
    return same_everywhere(copies) | statistics
