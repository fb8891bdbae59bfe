"""One program for all devices: DTensor finds the collectives that layouts ask for."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final, TypeAlias

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

from common.base.arrays import Array, Weights
from common.chapters.strategies import StrategiesOptions
from common.parallel.replicas import diverged
from common.trainers.strategies import SplitTrainer, require_parts, zeros
from frameworks.strategies.layouts import LAYOUTS, PART, REPLICA, Padding, padded
from frameworks.tensorflow.native.net import Params, Tensor, layer, lenet, mean_loss

WHOLE: Final[str] = dtensor.UNSHARDED
"""DTensor's name for an axis that is not sharded."""

Spec: TypeAlias = tuple[str, ...]
"""For each axis of a tensor, the axis of the mesh along which it is cut, or `WHOLE`."""

Batch: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""X, y, and each example's share of the mean loss: all as (replicas, parts, examples, ...)."""
Found: TypeAlias = tuple[Tensor, Params]
"""A loss, and its gradient."""


class OneProgram(SplitTrainer):
    """LeNet for the whole minibatch, sharded as the strategy's `Layout` says."""

    def __init__(
        self, weights: Mapping[str, Array], devices: Sequence[str], options: StrategiesOptions
    ) -> None:
        self.devices, self.options, self.plan = devices, options, options.plan(len(devices))
        self.layout, self.padding = LAYOUTS[self.plan.strategy], Padding(self.plan)
        sizes = [(REPLICA, self.plan.replicas), (PART, self.plan.devices)]
        self.mesh = dtensor.create_mesh(sizes, devices=list(devices))
        # They are traced once for each size.
        self._add, self._step, self._logits = (
            tf.function(each, autograph=False)
            for each in (self._added, self._stepped, self._predicted)
        )
        self.put(weights, zeros(weights))

    def train_batch(self, X: Array, y: Array, lr: float) -> Tensor:
        """One step of SGD with momentum on a minibatch; returns its mean loss, which waits."""
        loss, grads = self.loss_and_grads(X, y)
        self.update(grads, lr, self.options.momentum)
        local = zip(*map(dtensor.unpack, self.params.values()), strict=True)
        require_parts(self.plan, (sum(prod(part.shape) for part in parts) for parts in local))
        return dtensor.unpack(loss)[0]

    def gradients(self, X: Array, y: Array) -> Weights:
        """The whole gradient of the mean loss of a minibatch."""
        return self._canonical(self.loss_and_grads(X, y)[1])

    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch, computed as training computes them."""
        logits = whole("logits", self._logits(self.params, self._cut(X, 1)[0]))
        return logits.reshape(-1, logits.shape[-1])[: len(X)]

    def export(self) -> Weights:
        """The whole weights. Raises RunError if copies of one are not the same bit for bit."""
        return self._canonical(self.params)

    def velocities(self) -> Weights:
        """The whole velocities; raises RunError as `export`."""
        return self._canonical(self.momenta)

    def put(self, weights: Mapping[str, Array], velocities: Mapping[str, Array]) -> None:
        """Gives each device its part of the weights and of their velocities."""
        self.params = self._placed(weights, self.layout.weights)
        self.momenta = self._placed(velocities, self.layout.velocities)

    def loss_and_grads(self, X: Array, y: Array) -> Found:
        """The mean loss over a minibatch, and its gradient, added up over microbatches."""
        count, shares = self.plan.microbatches, np.full(len(y), 1 / len(y), X.dtype)
        none = {name: np.zeros(shape, X.dtype) for name, shape in self.plan.shapes.items()}
        total = (
            placed(np.zeros((), X.dtype), (), self.mesh),
            self._placed(none, self.layout.gradients),
        )
        for batch in zip(*(self._cut(rows, count) for rows in (X, y, shares)), strict=True):
            total = self._add(self.params, total, batch)
        return total

    def update(self, grads: Params, lr: float, momentum: float) -> None:
        """Changes velocities and weights by a gradient."""
        dtype = next(iter(grads.values())).dtype.as_numpy_dtype
        rates = (placed(np.array(rate, dtype), (), self.mesh) for rate in (lr, momentum))
        self.params, self.momenta = self._step(self.params, self.momenta, grads, *rates)

    def _added(self, weights: Params, total: Found, batch: Batch) -> Found:
        """A loss and its gradient, with a microbatch's added."""
        X, y, share = batch
        weights = self._laid_out(weights, self.layout.used)
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = mean_loss(lenet(X, weights, self.plan.layers, self._layer), y, share)
        # Not transposed: DTensor cannot do so in a backward pass that shards.
        grads = self._laid_out(tape.gradient(loss, weights), self.layout.used)
        grads = self._laid_out(grads, self.layout.gradients)
        return total[0] + loss, {name: grad + grads[name] for name, grad in total[1].items()}

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
        return layer(name, X, {k: v[self.padding.inner(k)] for k, v in params.items()})

    def _spec(self, name: str, each_has: str) -> Spec:
        """The layout of a tensor on the mesh: replicated or sharded."""
        cut = self.padding.axes[name] if each_has == "part" else None
        return tuple(PART if axis == cut else WHOLE for axis in range(len(self.plan.shapes[name])))

    def _laid_out(self, tensors: Params, each_has: str) -> Params:
        """The same tensors, relaid out by DTensor."""
        layouts = {k: dtensor.Layout(list(self._spec(k, each_has)), self.mesh) for k in tensors}
        return {name: dtensor.relayout(v, layouts[name]) for name, v in tensors.items()}

    def _placed(self, tensors: Mapping[str, Array], each_has: str) -> Params:
        """Tensors on the devices, with zeros at the end of the axis along which they are cut."""
        even = self.padding.padded(tensors)
        return {k: placed(v, self._spec(k, each_has), self.mesh) for k, v in even.items()}

    def _canonical(self, tensors: Params) -> Weights:
        """Tensors on the host, without these zeros."""
        return {k: whole(k, v)[self.padding.inner(k)] for k, v in tensors.items()}

    def _cut(self, rows: Array, microbatches: int) -> list[Tensor]:
        """Rows as (replicas, parts, n, ...) of each microbatch, filled up with zeros."""
        axes = REPLICA, PART if PART in self.layout.examples else WHOLE
        sizes = [self.mesh.dim_size(axis) if axis != WHOLE else 1 for axis in axes]
        even = padded(rows, 0, microbatches * sizes[0] * sizes[1])
        parts = even.reshape(microbatches, *sizes, -1, *rows.shape[1:])
        spec = (*axes, *[WHOLE] * rows.ndim)
        return [placed(part, spec, self.mesh) for part in parts]


def placed(values: Array, spec: Spec, mesh: dtensor.Mesh) -> tf.Tensor:
    """An array on the devices; the axes that are cut divide evenly."""
    parts = [tf.constant(values[index]) for index in indices(values.shape, spec, mesh)]
    return dtensor.pack(parts, dtensor.Layout(list(spec), mesh))


def whole(name: str, tensor: tf.Tensor) -> Array:
    """All of a tensor, on the host. Raises RunError if copies of a part differ in bits."""
    layout = dtensor.fetch_layout(tensor)
    full, seen = np.empty(tensor.shape, tensor.dtype.as_numpy_dtype), dict[str, Array]()
    where = indices(tensor.shape, tuple(layout.sharding_specs), layout.mesh)
    for device, (index, part) in enumerate(zip(where, dtensor.unpack(tensor), strict=True)):
        values = part.numpy()
        if seen.setdefault(str(index), values).tobytes() != values.tobytes():
            raise diverged(name, device)
        full[index] = values
    return full


def indices(shape: Sequence[int], spec: Spec, mesh: dtensor.Mesh) -> list[tuple[slice, ...]]:
    """Which part of a tensor each device has."""

    def part(place: dict[str, int], size: int, axis: str) -> slice:
        if axis == WHOLE:
            return slice(None)
        length = size // mesh.dim_size(axis)
        return slice(place[axis] * length, (place[axis] + 1) * length)

    return [
        tuple(part(place, size, axis) for size, axis in zip(shape, spec, strict=True))
        for place in mesh.local_device_locations()
    ]
