"""What the harness needs of the concise chapter's replicas in JAX, beside the listing."""

from collections.abc import Sequence

import jax

from common.base.arrays import Array, Weights
from frameworks.jax.activations import layer_outputs
from frameworks.jax.concise import Replicas, forward_backward
from frameworks.jax.layouts import copy_of, lay_out_each
from frameworks.jax.wrappers import first_net, whole


def gradients(X: Array, y: Array, replicas: Replicas, examples: int) -> Weights:
    """The gradient of the mean loss over the minibatch; running statistics stay as they are."""
    _, grads, _ = forward_backward(X, y, replicas, examples)
    return copy_of(whole(grads, replicas.mesh), 0)


def copies(replicas: Replicas) -> list[Weights]:
    """Weights and running statistics of each device of this process."""
    found, params = [], whole(replicas.params, replicas.mesh)
    for i in range(replicas.mesh.local_mesh.size):
        parts = copy_of(replicas.statistics, i)  # each (1, channels)
        found.append(copy_of(params, i) | {k: part[0] for k, part in parts.items()})
    return found


def put(everyones: Sequence[Weights], replicas: Replicas) -> None:
    """Gives every device its weights and running statistics; all devices' are given."""
    states = replicas.params, replicas.statistics
    layout = replicas.mesh, replicas.wrapper == "zero3"
    replicas.params, replicas.statistics = lay_out_each(everyones, *states, *layout)


def activations(X: Array, replicas: Replicas) -> Weights:
    """What each layer with weights makes of a batch on the first device of this process."""
    net = first_net(replicas.graph, replicas.params, replicas.statistics)
    return layer_outputs(X, net, jax.tree.leaves(replicas.params)[0].addressable_data(0).device)
