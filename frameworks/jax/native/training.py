"""The step that all native strategies of JAX share: two programs, and the layouts of tensors."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

import jax
import numpy as np
from jax import Array as Tensor
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from common.base.arrays import Array, Weights
from common.chapters.strategies import StrategiesOptions
from common.parallel.replicas import diverged
from common.trainers.strategies import SplitTrainer, require_parts, zeros
from frameworks.jax.native.net import Params
from frameworks.strategies.layouts import PART, REPLICA, padded

Batch: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""X, y, and each example's share of the mean loss: all as (microbatches, examples, ...)."""
Specs: TypeAlias = Mapping[str, P]
"""The axis of the mesh along which each axis of a tensor is cut, if any."""


class Training(SplitTrainer):
    """LeNet on a mesh: a row for each model-parallel group, a column for each part."""

    params: Params
    momenta: Params
    weight_specs: Specs
    velocity_specs: Specs
    sharing: tuple[str, ...] = (REPLICA,)
    """The axes of the mesh over which examples are divided."""

    def __init__(
        self,
        weights: Mapping[str, Array],
        devices: Sequence[jax.Device],
        options: StrategiesOptions,
    ) -> None:
        self.plan, self.momentum = options.plan(len(devices)), options.momentum
        shape = self.plan.replicas, self.plan.devices
        self.mesh = Mesh(np.reshape(devices, shape), (REPLICA, PART))
        self.begin()
        layouts = [
            {name: self.on_mesh(spec) for name, spec in specs.items()}
            for specs in (self.weight_specs, self.velocity_specs)
        ]
        loss = self.on_mesh(P())
        # A step needs no longer the weights and velocities that it was given.
        self._step = jax.jit(self._stepped, out_shardings=(*layouts, loss), donate_argnums=(0, 1))
        self._logits = jax.jit(self.logits, out_shardings=loss)
        self.put(weights, zeros(weights))

    def begin(self) -> None:
        """Sets the layouts: `weight_specs`, `velocity_specs` and `sharing`."""
        raise NotImplementedError

    def kept(self, tensors: Mapping[str, Array]) -> Weights:
        """Tensors in the form in which devices keep them: JAX takes only even parts."""
        raise NotImplementedError

    def canonical(self, kept: Mapping[str, Array]) -> Weights:
        """The inverse of `kept`."""
        raise NotImplementedError

    def loss_and_grads(self, weights: Params, batch: Batch) -> tuple[Tensor, Params]:
        """The mean loss over a minibatch, and its gradient."""
        raise NotImplementedError

    def logits(self, weights: Params, X: Tensor) -> Tensor:
        """The logits (n, 10) of a batch."""
        raise NotImplementedError

    def train_batch(self, X: Array, y: Array, lr: float) -> Tensor:
        """One step of SGD with momentum on a minibatch; returns its mean loss, which waits."""
        loss: Tensor
        step = *self.replicas, self._batch(X, y), lr, self.momentum
        self.params, self.momenta, loss = self._step(*step)
        local = zip(*(tensor.addressable_shards for tensor in self.params.values()), strict=True)
        require_parts(self.plan, (sum(part.data.size for part in parts) for parts in local))
        return loss

    def gradients(self, X: Array, y: Array) -> Weights:
        """The whole gradient of the mean loss: the velocity after a step from a velocity of 0."""
        weights, batch = self.export(), self._batch(X, y)
        placed = self._placed(weights, self.weight_specs)
        velocities = self._placed(zeros(weights), self.velocity_specs)
        _, grads, _ = self._step(placed, velocities, batch, 0.0, 0.0)
        return self._canonical(grads)

    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch, computed as training computes them."""
        return np.asarray(self._logits(self.params, self._cut(X, 1)))[: len(X)]

    def export(self) -> Weights:
        """The whole weights. Raises RunError if copies of one are not the same bit for bit."""
        return self._canonical(self.params)

    def velocities(self) -> Weights:
        """The whole velocities; raises RunError as `export`."""
        return self._canonical(self.momenta)

    def put(self, weights: Mapping[str, Array], velocities: Mapping[str, Array]) -> None:
        """Gives each device its part of the weights and of their velocities."""
        self.params = self._placed(weights, self.weight_specs)
        self.momenta = self._placed(velocities, self.velocity_specs)

    @property
    def replicas(self) -> tuple[Params, Params]:
        """The parameters and velocities on the mesh."""
        return self.params, self.momenta

    def on_mesh(self, spec: P) -> NamedSharding:
        """A layout on the devices."""
        return NamedSharding(self.mesh, spec)

    def _stepped(
        self, weights: Params, velocities: Params, batch: Batch, lr: float, momentum: float
    ) -> tuple[Params, Params, Tensor]:
        """Weights and velocities after a step of SGD, and the mean loss before it."""
        loss, grads = self.loss_and_grads(weights, batch)
        velocities = {name: momentum * velocities[name] + grad for name, grad in grads.items()}
        weights = {name: weight - lr * velocities[name] for name, weight in weights.items()}
        return weights, velocities, loss

    def _placed(self, tensors: Mapping[str, Array], specs: Specs) -> Params:
        """Tensors on the devices."""
        kept = self.kept(tensors)
        return {name: placed(values, self.on_mesh(specs[name])) for name, values in kept.items()}

    def _canonical(self, kept: Params) -> Weights:
        return self.canonical({name: whole(name, tensor) for name, tensor in kept.items()})

    def _batch(self, X: Array, y: Array) -> Batch:
        """A minibatch on the devices; zeros that fill up its parts have no share of the mean."""
        count, shares = self.plan.microbatches, np.full(len(y), 1 / len(y), X.dtype)
        return self._cut(X, count), self._cut(y, count), self._cut(shares, count)

    def _cut(self, rows: Array, microbatches: int) -> Tensor:
        """Rows as (microbatches, examples, ...), filled up with zeros to an even number."""
        shards = prod(self.mesh.shape[axis] for axis in self.sharing)
        even = padded(rows, 0, microbatches * shards)
        parts = even.reshape(microbatches, -1, *rows.shape[1:])
        return placed(parts, self.on_mesh(P(None, self.sharing)))


def placed(values: Array, layout: NamedSharding) -> Tensor:
    """An array on the devices, none of which shares memory with another."""
    # On CPUs, device_put would let all devices use the memory of the array.
    return jax.make_array_from_callback(values.shape, layout, lambda i: values[i].copy())


def whole(name: str, tensor: Tensor) -> Array:
    """All of a tensor, on the host. Raises RunError if copies of a part differ in bits."""
    full, seen = np.empty(tensor.shape, tensor.dtype), dict[str, Array]()
    for device, shard in enumerate(tensor.addressable_shards):
        values = np.asarray(shard.data)
        if seen.setdefault(str(shard.index), values).tobytes() != values.tobytes():
            raise diverged(name, device)
        full[shard.index] = values
    return full
