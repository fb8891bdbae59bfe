"""One step of any strategy on a mesh of devices.

Rows of the mesh are model-parallel groups: a row has the whole model, split by the strategy.
Columns are data-parallel groups: their devices have the same part of it, and sum their gradients.
Where each row has one device, that is data parallelism.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from common.base.arrays import Array, Weights
from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import Event, Kept, Ledger, Usage, mesh
from common.parallel.parts import parts_of, whole
from common.parallel.plans import Layouts, Plan
from common.trainers.strategies import Loss, SplitTrainer, zeros
from frameworks.strategies.collectives import allreduce
from frameworks.strategies.primitives import Params, Tensor
from frameworks.strategies.replica import Replica


def predict(X: Array, split: "Split") -> list[Tensor]:
    """The logits of a batch, in parts on several devices."""
    logits: list[Tensor] = []
    for row, shard in zip(split.rows, split.plan.rows_of(len(X)), strict=True):
        logits += strategy_of(split.plan).predict(row, X[shard])
    return logits


def loss_and_grads(X: Array, y: Array, split: "Split") -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss of a minibatch, and the gradients that each device needs."""
    losses: list[Tensor] = []
    grads: list[Kept] = []
    strategy = strategy_of(split.plan)
    for row, shard in zip(split.rows, split.plan.rows_of(len(X)), strict=True):
        row_losses, row_grads = strategy.loss_and_grads(row, X[shard], y[shard], len(X))
        losses += row_losses
        grads += row_grads
    for column in split.columns:
        local = [dict(grads[number]) for number in column.numbers]
        sums = allreduce(split.ops, local, "gradients", column)
        for number, total in zip(column.numbers, sums, strict=True):
            grads[number].update(total)
    return losses, grads


def train_batch(X: Array, y: Array, split: "Split", lr: float, momentum: float) -> list[Tensor]:
    """One step of SGD with momentum on a minibatch; returns the parts of its mean loss."""
    plan, strategy = split.plan, strategy_of(split.plan)
    replicated = plan.updated != plan.weights
    split.ledger.begin()
    losses, grads = loss_and_grads(X, y, split)
    for row in split.rows:
        updated = []
        owned = strategy.owned_slices(row) if replicated else [dict(kept) for kept in row.params]
        for params, number in zip(owned, row.group.numbers, strict=True):
            velocities, here = split.momenta[number], dict(grads[number])
            stepped = split.ops.sgd_step(params, dict(velocities), here, lr, momentum)
            updated.append(stepped[0])
            velocities.update(stepped[1])
            grads[number].clear()
        if replicated:
            updated = strategy.gather(updated, row)
        for kept, tensors in zip(row.params, updated, strict=True):
            kept.update(tensors)
    return losses


def strategy_of(plan: Plan) -> Any:
    """The module of this folder that carries out a plan: it is named like the plan's own module.

    It has `predict` and `loss_and_grads`. If its devices update less than they have, it also has
    `owned_slices`, what they update, and `gather`, which makes the updated slices whole.
    """
    return import_module(f"{__package__}.{type(plan).__module__.rpartition('.')[2]}")


class Split(SplitTrainer):
    """A model split over devices: parameters, and velocities (`momenta`) of what each updates."""

    def __init__(
        self,
        ops: Any,
        on_host: Callable[[Tensor], Array],
        weights: Mapping[str, Array],
        devices: Sequence[Any],
        options: StrategiesOptions,
    ) -> None:
        self.ops, self.on_host, self.momentum = ops, on_host, options.momentum
        self.plan = options.plan(len(devices))
        self.ledger = Ledger(len(devices), next(iter(weights.values())).itemsize)
        groups, self.columns = mesh(devices, self.plan.replicas, self.ledger)
        self.rows = [Replica(ops, self.plan, group, group.kept("weights")) for group in groups]
        self.params = [kept for row in self.rows for kept in row.params]
        self.momenta = [kept for group in groups for kept in group.kept("momentum")]
        self.put(weights, zeros(weights))

    @property
    def replicas(self) -> list[Params]:
        """The parameters of each device."""
        return [dict(kept) for kept in self.params]

    def put(self, weights: Mapping[str, Array], velocities: Mapping[str, Array]) -> None:
        """Gives each device its part of the parameters and of the velocities."""
        for group in (row.group for row in self.rows):
            places = zip(group.numbers, group.devices, strict=True)
            for column, (number, device) in enumerate(places):
                for name, values in parts_of(weights, self.plan.weights, column).items():
                    self.params[number][name] = self.ops.place(values, device)
                for name, values in parts_of(velocities, self.plan.updated, column).items():
                    self.momenta[number][name] = self.ops.place(values, device)

    def train_batch(self, X: Array, y: Array, lr: float) -> Loss:
        """One step of SGD with momentum on a minibatch; returns its mean loss, which waits."""
        return Loss(train_batch(X, y, self, lr, self.momentum), self.on_host)

    def gradients(self, X: Array, y: Array) -> Weights:
        """The whole gradient of the mean loss of a minibatch."""
        _, grads = loss_and_grads(X, y, self)
        found = self._whole(grads, self.plan.updated)
        for kept in grads:
            kept.clear()
        return found

    def predict(self, X: Array) -> Array:
        """The logits (n, 10) of a batch, computed as training computes them."""
        return np.concatenate([self.on_host(part) for part in predict(X, self)])

    def export(self) -> Weights:
        """The whole weights. Raises RunError if copies of one are not the same bit for bit."""
        return self._whole(self.params, self.plan.weights)

    def velocities(self) -> Weights:
        """The whole velocity of each weight; raises RunError as `export`."""
        return self._whole(self.momenta, self.plan.updated)

    def usage(self, examples: int) -> tuple[Usage, list[Event]]:
        """The traffic and memory of the last step, and what its devices did."""
        return self.ledger.usage(examples), self.ledger.events

    def _whole(self, held: Sequence[Kept], layouts: Layouts) -> Weights:
        """Whole tensors on the host, from the parts of all devices."""
        layouts = {name: layout * self.plan.replicas for name, layout in layouts.items()}
        parts = [{name: self.on_host(v) for name, v in kept.items()} for kept in held]
        return whole(parts, layouts, self.plan.shapes)
