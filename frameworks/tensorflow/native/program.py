"""One program for all devices: DTensor finds the collectives that layouts ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

from common.base.arrays import Array, Weights
from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import Collective
from common.parallel.plans import Plan
from frameworks.tensorflow.native.layouts import LAYOUTS, Layout, axis_of
from frameworks.tensorflow.native.moved import functions, moved
from frameworks.tensorflow.native.net import Params, Tensor, layer, lenet, mean_loss
from frameworks.tensorflow.native.placing import (
    PART,
    WHOLE,
    Spec,
    mesh_of,
    padded,
    placed,
    whole,
)

Batch: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""X, y, and each example's share of the mean loss: all as (replicas, parts, examples, ...)."""
Found: TypeAlias = tuple[Tensor, Params]
"""A loss, and its gradient."""


@dataclass
class Split:
    """LeNet, and the layouts of all that a step is given and gives."""

    plan: Plan
    mesh: dtensor.Mesh
    params: Params = field(init=False, repr=False)
    momenta: Params = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Makes programs of what is computed; they are traced once for each size."""
        self._add, self._step, self._logits = (
            tf.function(each, autograph=False)
            for each in (self._added, self._stepped, self._predicted)
        )

    @property
    def layout(self) -> Layout:
        """What devices have, in this strategy."""
        return LAYOUTS[self.plan.strategy]

    @cached_property
    def axes(self) -> Mapping[str, int | None]:
        """The axis along which each tensor is cut."""
        return {name: axis_of(name, self.plan) for name in self.plan.shapes}

    def train_batch(self, X: Array, y: Array, lr: float, momentum: float) -> Tensor:
        """One step of SGD with momentum on a minibatch; returns its mean loss, which waits."""
        loss, grads = self._loss_and_grads(X, y)
        self._update(grads, lr, momentum)
        return dtensor.unpack(loss)[0]

    def gradients(self, X: Array, y: Array) -> Weights:
        """The whole gradient of the mean loss of a minibatch."""
        return self._canonical(self._loss_and_grads(X, y)[1])

    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch, computed as training computes them."""
        logits = whole("logits", self._logits(self.params, self._cut(X, 1)[0]))
        return logits.reshape(-1, logits.shape[-1])[: len(X)]

    def weights(self) -> Weights:
        """The whole weights. Raises RunError if copies of one are not the same bit for bit."""
        return self._canonical(self.params)

    def velocities(self) -> Weights:
        """The whole velocities; raises RunError as `weights`."""
        return self._canonical(self.momenta)

    def put(self, weights: Mapping[str, Array], velocities: Mapping[str, Array]) -> None:
        """Gives each device its part of the weights and of their velocities."""
        self.params = self._placed(weights, self.layout.weights)
        self.momenta = self._placed(velocities, self.layout.velocities)

    def moved(self, X: Array, y: Array) -> list[Collective]:
        """What a step on such a minibatch moves, by kind: another split takes it."""
        other = begin(self.plan, self.mesh, self.weights())
        before = functions()
        _, grads = other._loss_and_grads(X, y)
        calls = dict.fromkeys(functions() - before, self.plan.microbatches)
        other._update(grads, 0.1, 0.9)
        return moved(calls | dict.fromkeys(functions() - before - calls.keys(), 1))

    def _loss_and_grads(self, X: Array, y: Array) -> Found:
        """The mean loss over a minibatch, and its gradient, added up over microbatches."""
        count, shares = self.plan.microbatches, np.full(len(y), 1 / len(y), X.dtype)
        zeros = {name: np.zeros(shape, X.dtype) for name, shape in self.plan.shapes.items()}
        total = (
            placed(np.zeros((), X.dtype), (), self.mesh),
            self._placed(zeros, self.layout.gradients),
        )
        for batch in zip(*(self._cut(rows, count) for rows in (X, y, shares)), strict=True):
            total = self._add(self.params, total, batch)
        return total

    def _update(self, grads: Params, lr: float, momentum: float) -> None:
        """Changes velocities and weights by a gradient."""
        dtype = next(iter(grads.values())).dtype.as_numpy_dtype
        rates = (placed(np.array(rate, dtype), (), self.mesh) for rate in (lr, momentum))
        self.params, self.momenta = self._step(self.params, self.momenta, grads, *rates)

    def _added(self, weights: Params, total: Found, batch: Batch) -> Found:
        """A loss and its gradient, and what a microbatch adds to them."""
        X, y, share = batch
        weights = self._laid_out(weights, self.layout.used)
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = mean_loss(lenet(X, weights, self.plan.layers, self._layer), y, share)
        # First as they are found: DTensor cannot transpose what it cuts on the way back.
        found = self._laid_out(tape.gradient(loss, weights), self.layout.used)
        found = self._laid_out(found, self.layout.gradients)
        return total[0] + loss, {name: grad + found[name] for name, grad in total[1].items()}

    def _stepped(
        self, weights: Params, velocities: Params, grads: Params, lr: Tensor, momentum: Tensor
    ) -> tuple[Params, Params]:
        """Weights and velocities after a step of SGD."""
        grads = self._laid_out(grads, self.layout.velocities)
        velocities = {name: momentum * velocities[name] + grad for name, grad in grads.items()}
        steps = {name: lr * velocity for name, velocity in velocities.items()}
        steps = self._laid_out(steps, self.layout.weights)
        return {name: weight - steps[name] for name, weight in weights.items()}, velocities

    def _predicted(self, weights: Params, X: Tensor) -> Tensor:
        """The logits (replicas, parts, n, 10) of a batch."""
        weights = self._laid_out(weights, self.layout.used)
        return lenet(X, weights, self.plan.layers, self._layer)

    def _layer(self, name: str, X: Tensor, params: Params) -> Tensor:
        """A layer; if its weights are whole, without the zeros that fill them up."""
        if self.layout.used == "part":  # outputs whose weights are zeros change nothing
            return layer(name, X, params)
        true = {k: v[tuple(map(slice, self.plan.shapes[k]))] for k, v in params.items()}
        return layer(name, X, true)

    def _spec(self, name: str, each_has: str) -> Spec:
        """How a tensor lies on the mesh of which each device has the whole, or a part."""
        cut = self.axes[name] if each_has == "part" else None
        return tuple(PART if axis == cut else WHOLE for axis in range(len(self.plan.shapes[name])))

    def _laid_out(self, tensors: Params, each_has: str) -> Params:
        """The same tensors; where they lie is asked of DTensor."""
        layouts = {k: dtensor.Layout(list(self._spec(k, each_has)), self.mesh) for k in tensors}
        return {name: dtensor.relayout(v, layouts[name]) for name, v in tensors.items()}

    def _placed(self, tensors: Mapping[str, Array], each_has: str) -> Params:
        """Tensors on the devices, with zeros at the end of the axis along which they are cut."""
        found = {}
        for name, values in tensors.items():
            axis, spec = self.axes[name], self._spec(name, each_has)
            even = values if axis is None else padded(values, axis, self.plan.devices)
            found[name] = placed(even, spec, self.mesh)
        return found

    def _canonical(self, tensors: Params) -> Weights:
        """Tensors on the host, without these zeros."""
        shapes = self.plan.shapes
        return {k: whole(k, v)[tuple(map(slice, shapes[k]))] for k, v in tensors.items()}

    def _cut(self, rows: Array, microbatches: int) -> list[Tensor]:
        """Rows as (replicas, parts, n, ...) of each microbatch, filled up with zeros."""
        axes = self.layout.examples
        sizes = [self.mesh.dim_size(axis) if axis != WHOLE else 1 for axis in axes]
        even = padded(rows, 0, microbatches * sizes[0] * sizes[1])
        parts = even.reshape(microbatches, *sizes, -1, *rows.shape[1:])
        spec = (*axes, *[WHOLE] * rows.ndim)
        return [placed(part, spec, self.mesh) for part in parts]


def begin(plan: Plan, mesh: dtensor.Mesh, weights: Mapping[str, Array]) -> Split:
    """A split with these weights, and velocities of 0."""
    split = Split(plan, mesh)
    split.put(weights, {name: 0 * values for name, values in weights.items()})
    return split


def make(weights: Mapping[str, Array], devices: Sequence[str], options: StrategiesOptions) -> Split:
    """LeNet on devices, each of which has what its strategy's `Layout` says."""
    plan = options.plan(len(devices))
    return begin(plan, mesh_of(devices, plan), weights)
