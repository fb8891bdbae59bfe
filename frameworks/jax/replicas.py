"""Functions of the harness for the concise chapter's replicas in JAX."""

from collections.abc import Sequence
from typing import Any

import jax
from flax import nnx
from jax import Array as Tensor, numpy as jnp

from common.base.arrays import Array, Weights
from frameworks.jax.concise import Replicas, forward_backward
from frameworks.jax.hosts import processes, whole as on_all
from frameworks.jax.layouts import canonical, copy_of, lay_out_each, on_host, to_canonical
from frameworks.jax.wrappers import first_net, whole


def gradients(X: Array, y: Array, replicas: Replicas, examples: int) -> Weights:
    """The gradient of the mean loss over the minibatch; a pass moves running statistics."""
    _, grads, _ = forward_backward(X, y, replicas, examples)
    return copy_of(whole(grads, replicas.mesh), 0)


def bias(replicas: Replicas) -> Tensor:
    """A copy of the last layer's bias (10,)."""
    dense: Any = replicas.params["fc"]
    return on_all(dense["bias"][...] + 0)


def copies(replicas: Replicas) -> list[Weights]:
    """Weights and running statistics of each device of this process."""
    weights, params = [], whole(replicas.params, replicas.mesh)
    for i in range(replicas.mesh.local_mesh.size):
        parts = copy_of(replicas.statistics, i)  # each (1, channels)
        weights.append(copy_of(params, i) | {k: part[0] for k, part in parts.items()})
    return weights


def put(per_device: Sequence[Weights], replicas: Replicas) -> None:
    """Gives every device its weights and running statistics; all devices' are given."""
    states = replicas.params, replicas.statistics
    layout = replicas.mesh, replicas.wrapper == "zero3"
    replicas.params, replicas.statistics = lay_out_each(per_device, *states, *layout)


def activations(X: Array, replicas: Replicas) -> Weights:
    """The output of each layer with weights, on the first device of this process."""
    net = first_net(replicas.graph, replicas.params, replicas.statistics)
    device = jax.tree.leaves(replicas.params)[0].addressable_data(0).device
    graph, state = nnx.split(net)
    layers = {canonical(path[:-1]) for path, _ in nnx.to_flat_state(state)}
    if processes() > 1:  # by way of this host, which has a copy of it
        state = jax.tree.map(on_host, state)
    net = nnx.merge(graph, jax.device_put(state, device))
    forward = nnx.capture(net, nnx.Intermediate, method_outputs=nnx.Intermediate)
    _, kept = forward(jnp.asarray(X))
    outputs = {canonical(path[:-1]): calls.get_value() for path, calls in nnx.to_flat_state(kept)}
    return {name: to_canonical(name, on_host(outputs[name][0])) for name in layers}
