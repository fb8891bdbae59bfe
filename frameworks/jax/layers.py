"""What each layer of ResNet-18 makes of a batch in Flax NNX."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import numpy as np
from flax import nnx
from jax import numpy as jnp

from common.base.arrays import Array, Weights
from frameworks.jax.resnet import canonical

if TYPE_CHECKING:
    from frameworks.jax.concise import Replicas


def activations(X: Array, replicas: "Replicas", devices: Sequence[jax.Device]) -> Weights:
    """What each layer with weights makes of a batch on the first device, by its name."""
    first = jax.tree.map(lambda stack: stack[0], replicas.statistics)
    params, statistics = jax.device_put((replicas.params, first), devices[0])
    net = nnx.merge(replicas.graph, params, statistics)
    layers = {canonical(path[:-1]) for path, _ in nnx.to_flat_state(params)}
    forward = nnx.capture(net, nnx.Intermediate, method_outputs=nnx.Intermediate)
    _, kept = forward(jnp.asarray(X))
    made = {canonical(path[:-1]): calls.get_value() for path, calls in nnx.to_flat_state(kept)}
    return {name: channels_first(np.asarray(made[name][0])) for name in layers}


def channels_first(values: Array) -> Array:
    """Images (n, rows, columns, channels) as (n, channels, rows, columns)."""
    return values.transpose(0, 3, 1, 2) if values.ndim == 4 else values
