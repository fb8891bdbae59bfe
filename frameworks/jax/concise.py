"""ResNet-18 on several devices with JAX's own parallelism, Flax and Optax.

python -m frameworks.jax.concise --devices 2 --preset quick
"""

if __name__ == "__main__":  # before JAX is loaded: --help and a wrong flag are answered at once
    from common.training.cli import main

    raise SystemExit(main("jax", "concise"))

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import jax
import numpy as np
import optax
from flax import nnx
from jax import Array as Tensor
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from common.base.arrays import Array, Weights
from common.chapters.concise import ConciseOptions
from common.parallel.shards import same_everywhere, saved_of, shard_bounds, shard_sizes
from frameworks.jax.activations import layer_outputs
from frameworks.jax.devices import devices as devices, synchronize as synchronize
from frameworks.jax.hosts import all_devices, laid_out, launch as launch, same_on_every_host
from frameworks.jax.layouts import AXIS, State, copy_of, everyones, lay_out_own, on_host
from frameworks.jax.optimizer import sgd
from frameworks.jax.resnet import resnet18
from frameworks.jax.wrappers import WRAPPERS, Graph, Step, evaluate, first_net

Device: TypeAlias = jax.Device


@jax.tree_util.register_dataclass
@dataclass
class Replicas:
    """The parameters, on every device, and every device's own running statistics, as (k, ...)."""

    params: State
    statistics: State
    graph: Graph = field(metadata={"static": True})
    mesh: Mesh = field(metadata={"static": True})
    wrapper: str = field(metadata={"static": True})


def replicate(
    weights: Mapping[str, Array], devices: Sequence[Device], options: ConciseOptions
) -> Replicas:
    """ResNet-18 with these weights, on all devices: its parts are laid out over the mesh."""
    mesh = Mesh(all_devices(devices), (AXIS,))
    net = nnx.eval_shape(lambda: resnet18(len(weights["conv1.bias"]), options.batch_norm))
    params, statistics = nnx.state(net, nnx.Param), nnx.state(net, nnx.BatchStat)
    params, statistics = lay_out_own([weights] * mesh.size, params, statistics, mesh)
    return Replicas(params, statistics, nnx.graphdef(net), mesh, options.wrapper)


def scatter(batch: Array, replicas: Replicas) -> Tensor:
    """The shards of a minibatch, each on its device, padded with zeros to the size of the first."""
    bounds = shard_bounds(len(batch), replicas.mesh.size)
    padded = np.zeros((len(bounds), bounds[0][1], *batch.shape[1:]), batch.dtype)
    for shard, (a, b) in zip(padded, bounds, strict=True):
        shard[: b - a] = batch[a:b]
    return laid_out(padded, NamedSharding(replicas.mesh, P(AXIS)))


loss = optax.softmax_cross_entropy_with_integer_labels


def forward_backward(X: Array, y: Array, replicas: Replicas) -> Step:
    """The mean loss over the minibatch, its gradient, and the running statistics after it."""
    mask = np.ones(len(X), X.dtype)  # it is padded with zeros, as the examples are
    shards = (scatter(X, replicas), scatter(y, replicas), scatter(mask, replicas))
    net = replicas.graph, replicas.params, replicas.statistics
    step: Step = WRAPPERS[replicas.wrapper](loss, replicas.mesh, *net, shards)
    return step


def train_batch(
    X: Array,
    y: Array,
    replicas: Replicas,
    devices: Sequence[Device],
    lr: float,
    options: ConciseOptions,
) -> Tensor:
    """One step of SGD on one minibatch; returns its mean loss, still on the device."""
    mean_loss, grads, replicas.statistics = forward_backward(X, y, replicas)
    replicas.params = sgd(replicas.params, grads, lr)
    return mean_loss


def gradients(
    X: Array, y: Array, replicas: Replicas, devices: Sequence[Device], options: ConciseOptions
) -> Weights:
    """The gradient of the mean loss over the minibatch, by canonical names."""
    _, grads, _ = forward_backward(X, y, replicas)
    return copy_of(grads, 0)


def predict_shards(X: Array, replicas: Replicas) -> list[Array]:
    """The logits of each device's shard, by the first device's running statistics."""
    sizes = shard_sizes(len(X), replicas.mesh.size)
    net = replicas.graph, replicas.params, replicas.statistics
    padded = on_host(evaluate(*net, scatter(X, replicas)))
    return [shard[:size] for shard, size in zip(padded, sizes, strict=True)]


def predict(X: Array, replicas: Replicas, devices: Sequence[Device]) -> Array:
    """The logits (n, 10) of a batch, each device computing those of its shard."""
    return np.concatenate([on_host(shard) for shard in predict_shards(X, replicas)])


def export(replicas: Replicas) -> Weights:
    """Weights and the first device's running statistics; checks that all replicas are the same."""
    params, statistics = everyones(replicas.params, replicas.statistics)
    first = {name: stack[0] for name, stack in statistics.items()}
    return same_on_every_host(same_everywhere(params)) | first


def save(replicas: Replicas) -> Weights:
    """All that the next step depends on: the weights, and every device's running statistics."""
    params, statistics = everyones(replicas.params, replicas.statistics)
    return same_on_every_host(same_everywhere(params)) | statistics


def restore(saved: Mapping[str, Array], replicas: Replicas, devices: Sequence[Device]) -> None:
    """Puts all replicas where `save` found others."""
    own = [saved_of(saved, index) for index in range(replicas.mesh.size)]
    states = replicas.params, replicas.statistics
    replicas.params, replicas.statistics = lay_out_own(own, *states, replicas.mesh)


def activations(X: Array, replicas: Replicas, devices: Sequence[Device]) -> Weights:
    """What each layer with weights makes of a batch on one device, by its name."""
    net = first_net(replicas.graph, replicas.params, replicas.statistics)
    return layer_outputs(X, net, devices[0])
