"""A split that trains: two programs, and tensors that lie on devices as a way to split says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Protocol, TypeAlias

import jax
import numpy as np
from jax import Array as Tensor
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from common.base.arrays import Array, Weights
from common.parallel.ledger import Collective
from common.parallel.plans import Plan
from common.parallel.replicas import diverged
from frameworks.jax.native.moved import moved
from frameworks.jax.native.net import Params

Batch: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""X, y, and each example's share of the mean loss: all as (microbatches, examples, ...)."""
Stepped: TypeAlias = tuple[Params, Params, Tensor]
"""Weights and velocities after a step, and the loss before it."""
Specs: TypeAlias = Mapping[str, P]
"""Along which axis of the mesh each axis of a tensor is cut, if any."""

REPLICA, PART = "replica", "part"
"""The axes of the mesh: groups of devices, and the parts that a group's devices have."""


class Way(Protocol):
    """A way to split: how tensors are kept, where they lie, and what is computed of them."""

    @property
    def mesh(self) -> Mesh:
        """The devices: groups, and the parts of each group."""

    @property
    def weights(self) -> Specs:
        """How kept weights lie on the mesh."""

    @property
    def velocities(self) -> Specs:
        """How their velocities do."""

    @property
    def sharing(self) -> tuple[str, ...]:
        """The axes of the mesh over which examples are divided."""

    @property
    def plan(self) -> Plan:
        """How the net is split."""

    def kept(self, tensors: Mapping[str, Array]) -> Weights:
        """Tensors in the form in which devices keep them: JAX takes even parts alone."""

    def canonical(self, kept: Mapping[str, Array]) -> Weights:
        """The inverse of `kept`."""

    def loss_and_grads(self, weights: Params, batch: Batch) -> tuple[Tensor, Params]:
        """The mean loss over a minibatch, and its gradient."""

    def logits(self, weights: Params, X: Tensor) -> Tensor:
        """The logits (n, 10) of a batch."""


@dataclass
class Split:
    """LeNet, split in some way."""

    way: Way
    params: Params = field(init=False)
    momenta: Params = field(init=False)

    def __post_init__(self) -> None:
        """Says where results lie, and that a step needs no longer what it was given."""
        weights, velocities = (self._lie(each) for each in (self.way.weights, self.way.velocities))
        self._step = jax.jit(
            self._stepped,
            out_shardings=(weights, velocities, self._on(P())),
            donate_argnums=(0, 1),
        )
        self._logits = jax.jit(self.way.logits, out_shardings=self._on(P()))

    def _stepped(
        self, weights: Params, velocities: Params, batch: Batch, lr: float, momentum: float
    ) -> Stepped:
        """Weights and velocities after a step of SGD, and the mean loss before it."""
        loss, grads = self.way.loss_and_grads(weights, batch)
        velocities = {name: momentum * velocities[name] + grad for name, grad in grads.items()}
        weights = {name: weight - lr * velocities[name] for name, weight in weights.items()}
        return weights, velocities, loss

    def train_batch(self, X: Array, y: Array, lr: float, momentum: float) -> Tensor:
        """One step of SGD with momentum on a minibatch; returns its mean loss, which waits."""
        stepped: Stepped = self._step(self.params, self.momenta, self._batch(X, y), lr, momentum)
        self.params, self.momenta, loss = stepped
        return loss

    def gradients(self, X: Array, y: Array) -> Weights:
        """The whole gradient of the mean loss of a minibatch.

        It is the velocity after a step from a velocity of 0: no further program is compiled.
        """
        weights = self.weights()
        zeros = self._placed({k: 0 * v for k, v in weights.items()}, self.way.velocities)
        batch = self._batch(X, y)
        _, grads, _ = self._step(self._placed(weights, self.way.weights), zeros, batch, 0.0, 0.0)
        return self._canonical(grads)

    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch, computed as training computes them."""
        return np.asarray(self._logits(self.params, self._cut(X, 1)))[: len(X)]

    def weights(self) -> Weights:
        """The whole weights. Raises RunError if copies of one are not the same bit for bit."""
        return self._canonical(self.params)

    def velocities(self) -> Weights:
        """The whole velocities; raises RunError as `weights`."""
        return self._canonical(self.momenta)

    def put(self, weights: Mapping[str, Array], velocities: Mapping[str, Array]) -> None:
        """Gives each device its part of the weights and of their velocities."""
        self.params = self._placed(weights, self.way.weights)
        self.momenta = self._placed(velocities, self.way.velocities)

    def block_until_ready(self) -> None:
        """Waits for the last step."""
        jax.block_until_ready((self.params, self.momenta))

    def moved(self, X: Array, y: Array) -> list[Collective]:
        """What the program that trains on such a minibatch moves, by kind: no step is taken."""
        given = self.params, self.momenta, self._batch(X, y), 0.1, 0.9
        return moved(str(self._step.lower(*given).compile().as_text()))

    def _on(self, spec: P) -> NamedSharding:
        return NamedSharding(self.way.mesh, spec)

    def _lie(self, specs: Specs) -> dict[str, NamedSharding]:
        return {name: self._on(spec) for name, spec in specs.items()}

    def _placed(self, tensors: Mapping[str, Array], specs: Specs) -> Params:
        """Tensors on the devices."""
        kept = self.way.kept(tensors)
        return {name: placed(values, self._on(specs[name])) for name, values in kept.items()}

    def _canonical(self, kept: Params) -> Weights:
        return self.way.canonical({name: whole(name, tensor) for name, tensor in kept.items()})

    def _batch(self, X: Array, y: Array) -> Batch:
        """A minibatch on the devices; zeros that fill up its parts have no share of the mean."""
        count, shares = self.way.plan.microbatches, np.full(len(y), 1 / len(y), X.dtype)
        return self._cut(X, count), self._cut(y, count), self._cut(shares, count)

    def _cut(self, rows: Array, microbatches: int) -> Tensor:
        """Rows as (microbatches, examples, ...), filled up with zeros to an even number."""
        shards = prod(self.way.mesh.shape[axis] for axis in self.way.sharing)
        even = padded(rows, 0, microbatches * shards)
        parts = even.reshape(microbatches, -1, *rows.shape[1:])
        return placed(parts, self._on(P(None, self.way.sharing)))


def mesh_of(devices: Sequence[jax.Device], plan: Plan) -> Mesh:
    """The devices as a table: a row for each group, a column for each part."""
    return Mesh(np.reshape(devices, (plan.replicas, plan.devices)), (REPLICA, PART))


def begin(way: Way, weights: Mapping[str, Array]) -> Split:
    """A split with these weights, and velocities of 0."""
    split = Split(way)
    split.put(weights, {name: 0 * values for name, values in weights.items()})
    return split


def placed(values: Array, layout: NamedSharding) -> Tensor:
    """An array on the devices, each of which has memory of its own."""
    # On CPUs, device_put would let all devices use the memory of the array.
    return jax.make_array_from_callback(values.shape, layout, lambda i: values[i].copy())


def whole(name: str, tensor: Tensor) -> Array:
    """All of a tensor, on the host. Raises RunError if copies of a part differ in bits."""
    found, seen = np.empty(tensor.shape, tensor.dtype), dict[str, Array]()
    for device, shard in enumerate(tensor.addressable_shards):
        values = np.asarray(shard.data)
        if seen.setdefault(str(shard.index), values).tobytes() != values.tobytes():
            raise diverged(name, device)
        found[shard.index] = values
    return found


def padded(values: Array, axis: int, multiple: int) -> Array:
    """An array with zeros at the end of an axis, so that its length is such a multiple."""
    return np.pad(
        values,
        [(0, -size % multiple if each == axis else 0) for each, size in enumerate(values.shape)],
    )
