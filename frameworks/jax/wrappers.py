"""Other wrappers of JAX than the listing's, and what all of them evaluate by."""

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
Shards = tuple[Tensor, Tensor, Tensor]
"""X, y and mask (1 for an example, 0 for padding), as (k, size of a shard, ...)."""
Step = tuple[Tensor, State, State]
"""The mean loss over a minibatch, its gradient, and the running statistics after it."""
ShardLoss = Callable[[Graph, State, State, Shards], tuple[Tensor, State]]
Program = Callable[[Mesh, Graph, State, State, Shards], Step]


@partial(jax.jit, static_argnums=(0, 1))
def program_for_each(
    shard_loss: ShardLoss,
    mesh: Mesh,
    graph: Graph,
    params: State,
    statistics: State,
    shards: Shards,
) -> Step:
    """A program for each device, with the collectives spelled out."""
    inputs, outputs = (P(), P(AXIS), P(AXIS)), (P(), P(), P(AXIS))

    @jax.shard_map(mesh=mesh, in_specs=inputs, out_specs=outputs)
    def on_device(params: State, statistics: State, shards: Shards) -> Step:
        # The gradient of parameters that count as one for all devices would be summed already.
        params = jax.lax.pcast(params, AXIS, to="varying")
        statistics, shard = jax.tree.map(lambda stack: stack[0], (statistics, shards))
        part_and_grads = jax.value_and_grad(partial(shard_loss, graph), has_aux=True)
        (part, seen), grads = part_and_grads(params, statistics, shard)
        value, grads = jax.lax.psum((part, grads), AXIS)
        return value, grads, jax.tree.map(lambda statistic: statistic[None], seen)

    return on_device(params, statistics, shards)


@partial(jax.jit, static_argnums=(0, 1))
def program_of_parts(
    one_program: Program,
    mesh: Mesh,
    graph: Graph,
    params: State,
    statistics: State,
    shards: Shards,
) -> Step:
    """One program: each device has a shard of the weights, and of the gradient."""
    value, grads, seen = one_program(mesh, graph, whole(params, mesh), statistics, shards)
    layout = jax.tree.map(lambda grad: part_of(grad.shape, mesh), grads)
    return value, jax.lax.with_sharding_constraint(grads, layout), seen


def chosen(wrapper: str, one_program: Program, shard_loss: ShardLoss) -> Program:
    """The program of a wrapper's step; `one_program` is that of the default one."""
    others: dict[str, Program] = {
        "shard_map": partial(program_for_each, shard_loss),
        "zero3": partial(program_of_parts, one_program),
    }
    return others.get(wrapper, one_program)


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
