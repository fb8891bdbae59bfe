"""What each layer of ResNet-18 makes of a batch in Flax NNX."""

import jax
from flax import nnx
from jax import numpy as jnp

from common.base.arrays import Array, Weights
from frameworks.jax.hosts import processes
from frameworks.jax.layouts import canonical, on_host, to_canonical


def layer_outputs(X: Array, net: nnx.Module, device: jax.Device) -> Weights:
    """What each layer with weights makes of a batch, by its name; the net evaluates it."""
    graph, state = nnx.split(net)
    layers = {canonical(path[:-1]) for path, _ in nnx.to_flat_state(state)}
    if processes() > 1:  # it comes by way of this host, which has a copy of all of it
        state = jax.tree.map(on_host, state)
    net = nnx.merge(graph, jax.device_put(state, device))
    forward = nnx.capture(net, nnx.Intermediate, method_outputs=nnx.Intermediate)
    _, kept = forward(jnp.asarray(X))
    made = {canonical(path[:-1]): calls.get_value() for path, calls in nnx.to_flat_state(kept)}
    return {name: to_canonical(name, on_host(made[name][0])) for name in layers}
