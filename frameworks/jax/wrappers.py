"""JAX's wrappers for several devices: one program for all, or a program for each."""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import jax
from flax import nnx
from jax import Array as Tensor
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from frameworks.jax.layouts import AXIS, State, part_of
from frameworks.jax.resnet import ResNet18

Graph: TypeAlias = nnx.GraphDef[ResNet18]
Loss = Callable[[Tensor, Tensor], Tensor]
Shards = tuple[Tensor, Tensor, Tensor]
"""X, y and mask (1 for an example, 0 for padding), as (k, size of a shard, ...)."""
Step = tuple[Tensor, State, State]
"""The mean loss over a minibatch, its gradient, and the running statistics after it."""


def shard_loss(
    loss: Loss, graph: Graph, params: State, statistics: State, shard: Shards
) -> tuple[Tensor, State]:
    """A shard's part of the mean loss over the minibatch, and its running statistics after it."""
    X, y, mask = shard
    net = nnx.merge(graph, params, statistics, copy=True)
    total = (loss(net(X, mask), y) * mask).sum()
    return total / jax.lax.psum(mask.sum(), AXIS), nnx.state(net, nnx.BatchStat)


@partial(jax.jit, static_argnums=(0, 1))
def one_program(
    loss: Loss, mesh: Mesh, graph: Graph, params: State, statistics: State, shards: Shards
) -> Step:
    """One program for the whole minibatch: the compiler finds the collectives its layout needs."""
    # Between processes gloo chooses the order of its sums.

    @partial(jax.value_and_grad, has_aux=True)
    def mean_loss(params: State) -> tuple[Tensor, State]:
        every_part = jax.vmap(partial(shard_loss, loss, graph), (None, 0, 0), axis_name=AXIS)
        parts, seen = every_part(params, statistics, shards)
        return parts.sum(), seen

    (value, seen), grads = mean_loss(params)
    whole_copy, sharded = NamedSharding(mesh, P()), NamedSharding(mesh, P(AXIS))
    step: Step = jax.lax.with_sharding_constraint(
        (value, grads, seen), (whole_copy, whole_copy, sharded)
    )
    return step


@partial(jax.jit, static_argnums=(0, 1))
def program_for_each(
    loss: Loss, mesh: Mesh, graph: Graph, params: State, statistics: State, shards: Shards
) -> Step:
    """A program for each device, with the collectives spelled out."""
    inputs, outputs = (P(), P(AXIS), P(AXIS)), (P(), P(), P(AXIS))

    @jax.shard_map(mesh=mesh, in_specs=inputs, out_specs=outputs)
    def on_device(params: State, statistics: State, shards: Shards) -> Step:
        # The gradient of parameters that count as one for all devices would be summed already.
        params = jax.lax.pcast(params, AXIS, to="varying")
        statistics, shard = jax.tree.map(lambda stack: stack[0], (statistics, shards))
        part_and_grads = jax.value_and_grad(partial(shard_loss, loss, graph), has_aux=True)
        (part, seen), grads = part_and_grads(params, statistics, shard)
        value, grads = jax.lax.psum((part, grads), AXIS)
        return value, grads, jax.tree.map(lambda statistic: statistic[None], seen)

    return on_device(params, statistics, shards)


@partial(jax.jit, static_argnums=(0, 1))
def program_of_parts(
    loss: Loss, mesh: Mesh, graph: Graph, params: State, statistics: State, shards: Shards
) -> Step:
    """One program: each device has a shard of the weights, and of the gradient."""
    value, grads, seen = one_program(loss, mesh, graph, whole(params, mesh), statistics, shards)
    layout = jax.tree.map(lambda grad: part_of(grad.shape, mesh), grads)
    return value, jax.lax.with_sharding_constraint(grads, layout), seen


WRAPPERS = {"sharding": one_program, "shard_map": program_for_each, "zero3": program_of_parts}


@partial(jax.jit, static_argnums=1)
def whole(params: State, mesh: Mesh) -> State:
    """The same parameters, all of them on each device."""
    found: State = jax.lax.with_sharding_constraint(params, NamedSharding(mesh, P()))
    return found


def first_net(graph: Graph, params: State, statistics: State) -> ResNet18:
    """The net with the running statistics of the first device."""
    return nnx.merge(graph, params, jax.tree.map(lambda stack: stack[0], statistics))


@partial(jax.jit, static_argnums=0)
def evaluate(mesh: Mesh, graph: Graph, params: State, statistics: State, shards: Tensor) -> Tensor:
    """The logits (k, size, 10) of k shards of images, by the first device's statistics."""
    return jax.vmap(first_net(graph, whole(params, mesh), statistics))(shards)
